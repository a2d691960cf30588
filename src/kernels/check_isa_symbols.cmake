# Fails if an object compiled for an instruction set defines a weak symbol: the linker may keep that
# copy of an inline function for everyone, and a smaller machine would run instructions it lacks.
# Usage: cmake -DNM=nm -DLIBRARY=libvc_kernels.a -P check_isa_symbols.cmake
execute_process(COMMAND ${NM} --defined-only --demangle ${LIBRARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," symbols "${symbols}")
string(REPLACE "\n" ";" symbols "${symbols}")
set(object "")
set(n_objects 0)
foreach(line IN LISTS symbols)
  if(line MATCHES "^([^ ]+\\.o):$")
    set(object "${CMAKE_MATCH_1}")
    if(object MATCHES "_(avx2|avx512|avx512_vnni)\\.cc\\.o$")
      math(EXPR n_objects "${n_objects} + 1")
    endif()
  elseif(object MATCHES "_(avx2|avx512|avx512_vnni)\\.cc\\.o$" AND line MATCHES " [WVu] ")
    message(SEND_ERROR "${object} defines a weak symbol: ${line}")
  endif()
endforeach()
if(n_objects EQUAL 0)
  message(SEND_ERROR "${LIBRARY} holds no object of an instruction set")
endif()
