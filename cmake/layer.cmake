# foretoken_layer(FOLDER [COLD | HOT] DEPENDS layers... LINKS layers... LIBRARIES targets...
#                 TESTS options...)
#
# FOLDER of src/, "core/kv", is one layer and one static library, foretoken_kv, made of all its .cc
# files; *_test.cc files become the test program kv_test. Files in a folder `testing` make a library
# of their own, foretoken_kv_testing, which the tests of this layer and of those above it link and no
# program does. DEPENDS names the layers below that it may include, and LINKS those that implement
# public headers which it includes: tools/check_layers.py reads this declaration and checks every
# #include against it. TESTS are options of foretoken_ctest.
#
# A layer is optimised by -O2; a HOT one, which computes, by -O3, and a COLD one, which is asked once
# or per request, by -O1, which builds a third faster.
function(foretoken_layer FOLDER)
  cmake_parse_arguments(LAYER "COLD;HOT" "" "DEPENDS;LINKS;LIBRARIES;TESTS" ${ARGN})
  get_filename_component(NAME ${FOLDER} NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${FOLDER}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(testing ${sources})
  list(FILTER testing INCLUDE REGEX "/src/${FOLDER}/(.*/)?testing/")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/src/${FOLDER}/(.*/)?testing/")

  if(sources)
    add_library(foretoken_${NAME} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(foretoken_${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(foretoken_${NAME} ${scope} ${PROJECT_SOURCE_DIR}/src
                                                     ${PROJECT_SOURCE_DIR}/include)
  foreach(layer ${LAYER_DEPENDS} ${LAYER_LINKS})
    get_filename_component(layer ${layer} NAME)
    target_link_libraries(foretoken_${NAME} ${scope} foretoken_${layer})
  endforeach()
  target_link_libraries(foretoken_${NAME} ${scope} fmt::fmt Threads::Threads ${LAYER_LIBRARIES})
  if(sources)
    set(warmth)
    foreach(kind COLD HOT)
      if(LAYER_${kind})
        set(warmth ${kind})
      endif()
    endforeach()
    foretoken_optimize(foretoken_${NAME} ${warmth})
    foretoken_unity(foretoken_${NAME} 8)
  endif()

  set(for_tests)
  foreach(layer ${LAYER_DEPENDS})
    get_property(of_layer GLOBAL PROPERTY foretoken_${layer}_for_tests)
    list(APPEND for_tests ${of_layer})
  endforeach()
  if(testing)
    add_library(foretoken_${NAME}_testing STATIC EXCLUDE_FROM_ALL ${testing})
    target_link_libraries(foretoken_${NAME}_testing PUBLIC foretoken_${NAME})
    foretoken_optimize(foretoken_${NAME}_testing ${warmth})
    list(APPEND for_tests foretoken_${NAME}_testing)
  endif()
  list(REMOVE_DUPLICATES for_tests)
  set_property(GLOBAL PROPERTY foretoken_${FOLDER}_for_tests ${for_tests})

  if(tests)
    foretoken_unit_tests(${NAME}_test TESTS ${tests} LIBRARIES foretoken_${NAME} ${for_tests}
                         CTEST ${LAYER_TESTS})
  endif()
endfunction()

# foretoken_optimize(LIBRARY [COLD | HOT])
#
# The optimisation of a library, and what it reads precompiled: headers that were read at another one
# do not serve. The first layer at -O2 is base, the first cold one text/hub.
function(foretoken_optimize LIBRARY)
  cmake_parse_arguments(OF "COLD;HOT" "" "" ${ARGN})
  set(first foretoken_base)
  if(OF_COLD)
    target_compile_options(${LIBRARY} PRIVATE $<$<CONFIG:Release>:-O1>)
    set(first foretoken_hub)
  elseif(OF_HOT)
    target_compile_options(${LIBRARY} PRIVATE $<$<CONFIG:Release>:-O3>)
    return()
  endif()
  if(LIBRARY STREQUAL first)
    foretoken_precompile(${LIBRARY})
  else()
    foretoken_precompile(${LIBRARY} LIKE ${first})
  endif()
endfunction()

# foretoken_unit_tests(PROGRAM [QUICK] TESTS files... LIBRARIES targets... CTEST options...)
#
# The test program PROGRAM, made of files with GoogleTest's tests. What is tested is optimised as
# ever; the tests themselves build a third faster at -O1, and QUICK ones, with next to no work of
# their own and many templates, at -O0. The precompiled headers are those of the first program of a
# kind, base_test or server_test. CTEST are options of foretoken_ctest.
function(foretoken_unit_tests PROGRAM)
  if(NOT FORETOKEN_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(UNIT "QUICK" "" "TESTS;LIBRARIES;CTEST" ${ARGN})
  add_executable(${PROGRAM} ${UNIT_TESTS})
  target_link_libraries(${PROGRAM} PRIVATE ${UNIT_LIBRARIES} GTest::gmock GTest::gtest
                                           GTest::gtest_main)
  set(level -O1)
  set(first base_test)
  if(UNIT_QUICK)
    set(level -O0)
    set(first server_test)
  endif()
  target_compile_options(${PROGRAM} PRIVATE $<$<CONFIG:Release>:${level}>)
  target_compile_definitions(${PROGRAM} PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(PROGRAM STREQUAL first)
    foretoken_precompile(${PROGRAM} HEADERS <gmock/gmock.h> <gtest/gtest.h>)
  else()
    foretoken_precompile(${PROGRAM} LIKE ${first})
  endif()
  foretoken_unity(${PROGRAM} 5)
  foretoken_ctest(${PROGRAM} ${UNIT_CTEST})
endfunction()

# foretoken_room(FOLDER DEPENDS layers and earlier rooms...)
#
# What a folder of apps/, bench/ or tests/ may include, named by its path from the root. It builds
# nothing: tools/check_layers.py reads the declaration.
function(foretoken_room FOLDER)
  if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${FOLDER})
    message(FATAL_ERROR "foretoken_room(${FOLDER}): there is no such folder")
  endif()
endfunction()
