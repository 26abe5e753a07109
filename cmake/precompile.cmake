# foretoken_precompile(TARGET [LIKE OTHER] [HEADERS header...])
#
# What nearly every file includes is read once and not for each of them, which takes a quarter off a
# build from nothing: TARGET reads the standard library and HEADERS, or what OTHER, a target with
# the same optimisation, has read. Not where ccache is at hand, which does better and would take the
# read headers for new ones. And not by clang, which reads them all in a second.
function(foretoken_precompile TARGET)
  if(CCACHE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  cmake_parse_arguments(OF "" "LIKE" "HEADERS" ${ARGN})
  # Much of what GCC 12 warns of once it has inlined is a false alarm about std::string where its
  # headers were read before.
  target_compile_options(${TARGET} PRIVATE
    -Wno-array-bounds -Wno-dangling-pointer -Wno-free-nonheap-object -Wno-maybe-uninitialized
    -Wno-nonnull -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-use-after-free)
  if(OF_LIKE)
    target_precompile_headers(${TARGET} REUSE_FROM ${OF_LIKE})
  else()
    target_precompile_headers(${TARGET} PRIVATE
      <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
      <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span>
      <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector> <fmt/core.h>
      ${OF_HEADERS})
  endif()
endfunction()
