# Each instruction set has one translation unit, compiled with its own flags; which of them runs is
# chosen at run time. Nothing else may be compiled with these flags (tools/check_isa_symbols.sh).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 takes the undefined pass-through operands of its own intrinsics for mistakes.
    list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set_source_files_properties(backend/cpu/kernels_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
  set_source_files_properties(backend/cpu/kernels_avx512.cc PROPERTIES COMPILE_OPTIONS "${avx512}")
  set_source_files_properties(backend/cpu/kernels_avx512_bf16.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512bf16")
  set_source_files_properties(backend/cpu/kernels_amx.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512bf16;-mamx-tile;-mamx-bf16")
  # Every processor with AVX2 converts halves.
  set_source_files_properties(backend/cpu/quant/kernels_avx2.cc PROPERTIES
                              COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
  set_source_files_properties(backend/cpu/quant/kernels_avx512.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512}")
  set_source_files_properties(backend/cpu/quant/kernels_avx512_vnni.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512vnni")
endif()

if(FORETOKEN_BUILD_FUZZERS)
  # No fuzz target computes with kernels, and clang 14 needs two minutes for each of these files
  # with sanitizers.
  foreach(kernels portable fused avx2 avx512 avx512_bf16 amx)
    set_property(SOURCE backend/cpu/kernels_${kernels}.cc APPEND PROPERTY COMPILE_OPTIONS
                 "-fno-sanitize=all")
  endforeach()
  foreach(kernels portable avx2 avx512 avx512_vnni)
    set_property(SOURCE backend/cpu/quant/kernels_${kernels}.cc APPEND PROPERTY COMPILE_OPTIONS
                 "-fno-sanitize=all")
  endforeach()
endif()
