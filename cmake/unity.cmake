option(FORETOKEN_UNITY "Compile several files of a target in one go" ON)

# foretoken_unity(TARGET MOST)
#
# With FORETOKEN_UNITY, TARGET is compiled in batches of at most MOST of its files, of about the same
# size, so that their headers are read and their templates instantiated once for each batch. Names of
# anonymous namespaces then meet, so they differ between the files of a target, and no function's
# variable has the name of another file's. CMake leaves out files with options of their own.
function(foretoken_unity TARGET MOST)
  if(NOT FORETOKEN_UNITY)
    return()
  endif()
  get_target_property(sources ${TARGET} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + ${MOST} - 1) / ${MOST}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes every file but the first of its arguments for a header, which others might include.
    target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
