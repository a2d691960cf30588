# Four fifths of a build is reading the headers of libraries; so those that most files read are
# compiled once. The target headers_alone finds a header that forgot one of its own includes.
option(VERICACHE_PRECOMPILE "Precompile the headers of libraries" ON)

set(headers <fmt/format.h> <tl/expected.hpp> <algorithm> <array> <cmath> <cstdint> <cstring>
  <filesystem> <functional> <memory> <optional> <span> <string> <string_view> <utility> <vector>)

# Precompiled headers belong to a target; others with the same flags share them.
function(vericache_precompiled_headers owner)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${owner}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "" @ONLY)
  add_library(${owner} OBJECT ${source})
  target_link_libraries(${owner} PRIVATE vericache_options ${ARG_LIBS})
  target_precompile_headers(${owner} PRIVATE ${ARG_HEADERS})
endfunction()
if(VERICACHE_PRECOMPILE)
  vericache_precompiled_headers(precompiled_sources LIBS fmt::fmt HEADERS ${headers})
  vericache_precompiled_headers(precompiled_tests LIBS fmt::fmt GTest::gtest GTest::gmock
    HEADERS ${headers} <gmock/gmock.h> <gtest/gtest.h> <random>)
endif()

# vericache_precompile(TARGET OWNER): TARGET uses the precompiled headers of OWNER.
function(vericache_precompile target owner)
  if(VERICACHE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
