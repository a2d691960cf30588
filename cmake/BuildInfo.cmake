# Writes what `vericache --version` says about the build. Run at build time, so that the commit is
# the one that was compiled; the file is touched only when it changes.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD --
    RESULT_VARIABLE is_modified ERROR_QUIET)
  if(is_modified)
    string(APPEND commit "-modified")
  endif()
endif()
set(flags "${BUILD_TYPE}")
if(SANITIZE)
  string(APPEND flags ", sanitizers ${SANITIZE}")
endif()
set(text "#define VERICACHE_VERSION \"${VERSION}\"
#define VERICACHE_COMMIT \"${commit}\"
#define VERICACHE_COMPILER \"${COMPILER}\"
#define VERICACHE_BUILD_FLAGS \"${flags}, baseline x86-64-v2, -ffp-contract=off\"
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
