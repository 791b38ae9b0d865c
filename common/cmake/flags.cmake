# Compiler flags for all targets.

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-fno-math-errno>")
if(T2T_ARCH)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-march=${T2T_ARCH}>")
endif()

# What g++ 12 finds in its own headers and is nothing: in those of AVX-512, and of strings.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overflow>")
endif()

# From g++ 13 on, -O3 sets these two on x86 and -Og does not, and what was precompiled with other settings is not used.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-munroll-only-small-loops T2T_UNROLLS_SMALL_LOOPS)
if(T2T_UNROLLS_SMALL_LOOPS)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-munroll-only-small-loops;-mvzeroupper>")
endif()

# Little is gained by optimizing code that only shows, reads or tests something, and there is far more of it to
# compile than to run.
set(T2T_LITTLE_WORK $<$<CONFIG:Release>:-Og>)

if(T2T_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${T2T_SANITIZE};-fno-sanitize-recover=all;-Wno-uninitialized>")
  add_link_options(-fsanitize=${T2T_SANITIZE})
endif()

# Homebrew leaves these two where no compiler looks, and Apple's clang knows OpenMP by this flag alone.
if(APPLE)
  find_path(homebrew opt/openblas/include/cblas.h PATHS /opt/homebrew /usr/local REQUIRED
    NO_DEFAULT_PATH)
  list(APPEND CMAKE_PREFIX_PATH ${homebrew}/opt/openblas)
  if(CMAKE_CXX_COMPILER_ID STREQUAL AppleClang)
    set(OpenMP_CXX_FLAGS "-Xpreprocessor -fopenmp -I${homebrew}/opt/libomp/include")
    set(OpenMP_CXX_LIB_NAMES omp)
    set(OpenMP_omp_LIBRARY ${homebrew}/opt/libomp/lib/libomp.dylib)
  endif()
endif()
if(CMAKE_CROSSCOMPILING)  # libraries that are headers alone lie in the folders of the machine that builds
  list(APPEND CMAKE_PREFIX_PATH /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake)
endif()
