# Flags of every target of ours. The arithmetic contract (docs/numerics.md) rests on two of them: no
# contraction, no fast-math.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Dev: DCHECK on; still optimised, because the identity tests run real forward passes.
set(CMAKE_CXX_FLAGS_DEV "-O2 -g1 -DVERICACHE_DCHECK=1")
set(CMAKE_C_FLAGS_DEV "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

add_library(vericache_options INTERFACE)
target_compile_options(vericache_options INTERFACE
  -ffp-contract=off -march=x86-64-v2 -mtune=generic
  -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Wimplicit-fallthrough
  -Wno-restrict  # g++ 12 sees overlaps that are not there in "text" + std::string (GCC PR 105651)
  -Werror)
target_include_directories(vericache_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

option(VERICACHE_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
if(VERICACHE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link -w)  # warnings are g++'s to give
endif()

set(VERICACHE_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")
if(VERICACHE_SANITIZE)
  add_compile_options(
    -fsanitize=${VERICACHE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${VERICACHE_SANITIZE})
endif()
