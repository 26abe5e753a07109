# foretoken_layer(NAME DEPENDS layers... LIBRARIES targets... SERIAL_TESTS filter)
#
# One folder of src/ is one layer and one static library foretoken_NAME, made of all its .cc files;
# *_test.cc files become the test program NAME_test. DEPENDS names the layers below that it may
# include: tools/check_layers.py reads this declaration and checks every #include against it. Tests
# that the filter matches, in the form of --gtest_filter, run with no other test beside them.
function(foretoken_layer NAME)
  cmake_parse_arguments(LAYER "" "" "DEPENDS;LIBRARIES;SERIAL_TESTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(foretoken_${NAME} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(foretoken_${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(foretoken_${NAME} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                     ${PROJECT_SOURCE_DIR}/include)
  foreach(layer ${LAYER_DEPENDS})
    target_link_libraries(foretoken_${NAME} ${scope} foretoken_${layer})
  endforeach()
  target_link_libraries(foretoken_${NAME} ${scope} fmt::fmt Threads::Threads ${LAYER_LIBRARIES})
  if(NAME STREQUAL base)
    foretoken_precompile(foretoken_base)
  elseif(sources)
    foretoken_precompile(foretoken_${NAME} LIKE foretoken_base)
  endif()
  if(sources)
    foretoken_unity(foretoken_${NAME} 8)
  endif()

  if(FORETOKEN_BUILD_TESTS AND tests)
    add_executable(${NAME}_test ${tests})
    target_link_libraries(${NAME}_test PRIVATE foretoken_${NAME} GTest::gmock GTest::gtest
                                               GTest::gtest_main)
    # What is tested is optimised in full; the tests themselves build a third faster at -O1.
    target_compile_options(${NAME}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    target_compile_definitions(${NAME}_test PRIVATE
      FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(NAME STREQUAL base)
      foretoken_precompile(base_test HEADERS <gmock/gmock.h> <gtest/gtest.h>)
    else()
      foretoken_precompile(${NAME}_test LIKE base_test)
    endif()
    foretoken_unity(${NAME}_test 5)
    if(LAYER_SERIAL_TESTS)
      gtest_discover_tests(${NAME}_test DISCOVERY_MODE PRE_TEST TEST_FILTER "${LAYER_SERIAL_TESTS}"
                           PROPERTIES TIMEOUT 300 RUN_SERIAL TRUE)
      set(others TEST_FILTER "-${LAYER_SERIAL_TESTS}")
    endif()
    gtest_discover_tests(${NAME}_test DISCOVERY_MODE PRE_TEST ${others} PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# foretoken_room(FOLDER DEPENDS layers and earlier rooms...)
#
# What a folder of apps/, bench/ or tests/ may include. It builds nothing: tools/check_layers.py
# reads the declaration.
function(foretoken_room FOLDER)
  cmake_parse_arguments(ROOM "" "" "DEPENDS" ${ARGN})
  if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/apps/${FOLDER} AND
     NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${FOLDER})
    message(FATAL_ERROR "foretoken_room(${FOLDER}): there is no such folder")
  endif()
endfunction()
