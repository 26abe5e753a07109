# Each instruction set has one translation unit, compiled with its own flags; which of them runs is
# chosen at run time. Nothing else may be compiled with these flags (tools/check_isa_symbols.sh).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 takes the undefined pass-through operands of its own intrinsics for mistakes.
    list(APPEND avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  set_source_files_properties(core/backend/cpu/kernels_avx2.cc PROPERTIES
                              COMPILE_OPTIONS "-mavx2;-mfma")
  set_source_files_properties(core/backend/cpu/kernels_avx512.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512}")
  set_source_files_properties(core/backend/cpu/kernels_avx512_bf16.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512bf16")
  set_source_files_properties(core/backend/cpu/amx/kernels_amx.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512bf16;-mamx-tile;-mamx-bf16")
  # Every processor with AVX2 converts halves.
  set_source_files_properties(core/backend/cpu/quant/kernels_avx2.cc
                              core/backend/cpu/quant/kernels_avx_vnni_emulated_test.cc PROPERTIES
                              COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
  set_source_files_properties(core/backend/cpu/quant/kernels_avx_vnni.cc PROPERTIES
                              COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mavxvnni")
  set_source_files_properties(core/backend/cpu/quant/kernels_avx512.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512}")
  set_source_files_properties(core/backend/cpu/quant/kernels_avx512_vnni.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mavx512vnni")
  set_source_files_properties(core/backend/cpu/amx/kernels_amx_int8.cc PROPERTIES
                              COMPILE_OPTIONS "${avx512};-mamx-tile;-mamx-int8")
endif()
file(GLOB_RECURSE kernels ${CMAKE_CURRENT_SOURCE_DIR}/core/backend/cpu/kernels_*.cc)
# What was read without these flags does not serve.
set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
# Each defines FT_ISA for the headers that it includes.
file(GLOB_RECURSE emulations ${CMAKE_CURRENT_SOURCE_DIR}/core/backend/cpu/*_emulation_test.cc)
set_source_files_properties(${kernels} ${emulations} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

if(FORETOKEN_BUILD_FUZZERS)
  # No fuzz target computes with kernels, and clang 14 needs two minutes for each of these files
  # with sanitizers.
  set_property(SOURCE ${kernels} APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=all")
endif()
