# vericache_room(NAME [DEPS rooms] [LIBS libraries]): the static library of src/NAME, made of every
# .cc in it.
function(vericache_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  if(sources)
    add_library(vc_${name} STATIC ${sources})
    set(public PUBLIC)
    set(private PRIVATE)
  else()  # headers only
    add_library(vc_${name} INTERFACE)
    set(public INTERFACE)
    set(private INTERFACE)
  endif()
  list(TRANSFORM ARG_DEPS PREPEND vc_ OUTPUT_VARIABLE deps)
  target_link_libraries(vc_${name} ${public} vericache_options fmt::fmt Threads::Threads ${deps})
  target_link_libraries(vc_${name} ${private} ${ARG_LIBS})
  # Flags per file: the instruction sets of src/kernels, which must not share precompiled headers.
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${name}/flags.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${name}/flags.cmake)
  elseif(sources)
    vericache_precompile(vc_${name} precompiled_sources)
  endif()
endfunction()

function(vericache_test_binary target label libs)
  add_executable(${target} ${ARGN})
  target_link_libraries(
    ${target} PRIVATE ${libs} vc_test_support GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE VERICACHE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  vericache_precompile(${target} precompiled_tests)
  # Half the compile time of -O3, and what the tests spend theirs in is not in their own code.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS ${label} TIMEOUT 300)
  if("${label}" STREQUAL "slow")  # has the machine to itself
    set_tests_properties(${target} PROPERTIES PROCESSORS 2 TIMEOUT 3600)
  endif()
endfunction()

# vericache_tests(NAME): the test binary of tests/NAME. Files named *_slow_test.cc form a second
# binary, labelled slow.
function(vericache_tests name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB slow CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_slow_test.cc)
  file(GLOB fast CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cc)
  list(FILTER fast EXCLUDE REGEX "_slow_test\\.cc$")
  if(fast)
    vericache_test_binary(test_${name} fast "${ARG_LIBS}" ${fast})
  endif()
  if(slow)
    vericache_test_binary(test_${name}_slow slow "${ARG_LIBS}" ${slow})
  endif()
endfunction()
