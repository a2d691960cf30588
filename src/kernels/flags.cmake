# Instruction sets, one file each. Everything else in this room is built for the baseline
# (x86-64-v2) and may run anywhere.
set(vericache_avx2_flags -mavx2 -mfma -mf16c)
# GCC 12's own AVX-512 intrinsics start from an undefined vector, which it then warns about.
set(vericache_avx512_flags ${vericache_avx2_flags} -mavx512f -mavx512bw -mavx512vl -mavx512dq
    -mprefer-vector-width=512 -Wno-uninitialized -Wno-maybe-uninitialized)
set(vericache_avx512_vnni_flags ${vericache_avx512_flags} -mavx512vnni)

foreach(isa avx2 avx512 avx512_vnni)
  file(GLOB isa_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*_${isa}.cc)
  set_source_files_properties(${isa_sources} PROPERTIES COMPILE_OPTIONS "${vericache_${isa}_flags}")
endforeach()

if(NOT VERICACHE_SANITIZE)  # sanitizers add weak symbols of their own
  add_test(NAME kernels_isa_symbols
    COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:vc_kernels>
      -P ${CMAKE_SOURCE_DIR}/src/kernels/check_isa_symbols.cmake)
  set_tests_properties(kernels_isa_symbols PROPERTIES LABELS fast)
endif()
