# foretoken_ctest(PROGRAM [SHARDS number] [SERIAL filter])
#
# PROGRAM, made with GoogleTest, as tests of ctest: all its cases in one process, which begins once
# and keeps what cases share, or in so many processes, each with a part of the cases. These begin early,
# as they take long (tests/CMakeLists.txt); two of odd numbers never run at once, nor two of even
# ones, so a program may choose its cores by the number. Cases that the filter SERIAL matches, in the
# form of --gtest_filter, are a test that runs with no other beside it.
# One case: PROGRAM --gtest_filter=SUITE.CASE.
function(foretoken_ctest PROGRAM)
  cmake_parse_arguments(OF "" "SHARDS;SERIAL" "" ${ARGN})
  set(arguments --gtest_brief=1)
  if(OF_SERIAL)
    add_test(NAME ${PROGRAM}.serial COMMAND ${PROGRAM} ${arguments} --gtest_filter=${OF_SERIAL})
    set_tests_properties(${PROGRAM}.serial PROPERTIES TIMEOUT 1800 RUN_SERIAL TRUE)
    list(APPEND arguments --gtest_filter=-${OF_SERIAL})
  endif()
  if(NOT OF_SHARDS)
    add_test(NAME ${PROGRAM} COMMAND ${PROGRAM} ${arguments})
    set_tests_properties(${PROGRAM} PROPERTIES TIMEOUT 1800)
    return()
  endif()
  math(EXPR last "${OF_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${PROGRAM}.${shard} COMMAND ${PROGRAM} ${arguments})
    math(EXPR parity "${shard} % 2")
    set_tests_properties(${PROGRAM}.${shard} PROPERTIES TIMEOUT 1800 COST 200
      RESOURCE_LOCK ${PROGRAM}.parity${parity}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${OF_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
