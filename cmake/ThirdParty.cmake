# Libraries we take. From the distribution: fmt, tl::expected, CLI11, spdlog, libedit, toml++,
# GoogleTest, Google Benchmark. From the pinned source: llama.cpp with ggml, behind one target,
# vericache_llama, which only src/model and the server link.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_library(LIBEDIT_LIBRARY edit REQUIRED)
find_path(LIBEDIT_INCLUDE histedit.h REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)  # headers alone

set(VERICACHE_LLAMA_CPP "" CACHE PATH "A llama.cpp source folder to use, not the pinned one")
set(VERICACHE_LLAMA_CXX ${CMAKE_CXX_COMPILER} CACHE PATH "What compiles the pinned llama.cpp")

# Their headers are not held to our warnings.
function(vericache_llama_includes source)
  target_include_directories(vericache_llama SYSTEM INTERFACE
    ${source}/include ${source}/src ${source}/ggml/include ${source}/common ${source}/vendor)
endfunction()

add_library(vericache_llama INTERFACE)
if(VERICACHE_LLAMA_CPP)
  set(LLAMA_CPP_SOURCE ${VERICACHE_LLAMA_CPP})
  add_subdirectory(third_party/llama.cpp)
  vericache_llama_includes(${VERICACHE_LLAMA_CPP})
  target_link_libraries(vericache_llama INTERFACE llama-common)
else()
  # Fetched and built on the first configuration; afterwards this costs a tenth of a second and no
  # network.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    third_party/pins.txt third_party/llama.cpp/CMakeLists.txt)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/third_party/fetch.py llama
            --cc ${CMAKE_C_COMPILER} --cxx ${VERICACHE_LLAMA_CXX}
    OUTPUT_VARIABLE folders RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "llama.cpp could not be fetched or built (see above). "
                        "-DVERICACHE_LLAMA_CPP=DIR takes a source folder of yours.")
  endif()
  string(REPLACE "\n" ";" folders "${folders}")
  list(GET folders 0 source)
  list(GET folders 1 libraries)
  vericache_llama_includes(${source})
  # In link order: each needs those after it.
  foreach(name llama-common llama-common-base llama ggml ggml-cpu ggml-base)
    target_link_libraries(vericache_llama INTERFACE ${libraries}/lib/lib${name}.a)
  endforeach()
  target_link_libraries(vericache_llama INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
endif()
