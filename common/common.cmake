# What every chapter stands on: the libraries, the tensor core, and the programs that time its work.

# What g++ finds in the libraries' headers and is nothing, at -O3 more of it. clang finds none of it,
# and does not know all of these words.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  string(APPEND CMAKE_CXX_FLAGS " -Wno-restrict -Wno-maybe-uninitialized")
  string(APPEND CMAKE_CXX_FLAGS_RELEASE
    " -Wno-uninitialized -Wno-array-bounds -Wno-stringop-overflow")
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
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenMP REQUIRED)
find_package(xtensor REQUIRED)
find_package(xsimd REQUIRED)
# Debian tells of it by pkg-config alone, Fedora and Homebrew by CMake's files.
find_package(httplib QUIET CONFIG)
if(TARGET httplib::httplib)
  set(HTTPLIB httplib::httplib)
else()
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(HTTPLIB_PC REQUIRED IMPORTED_TARGET cpp-httplib)
  set(HTTPLIB PkgConfig::HTTPLIB_PC)
  find_library(CRYPTO_LIBRARY crypto)  # newer headers of it call OpenSSL themselves
  if(CRYPTO_LIBRARY)
    list(APPEND HTTPLIB ${CRYPTO_LIBRARY})
  endif()
endif()
# The OpenMP build of OpenBLAS shares its threads with our loops; other builds fight them for cores.
find_library(BLAS_LIBRARY NAMES openblas blas PATH_SUFFIXES openblas-openmp REQUIRED)
# An installed libfmt is made for one processor and one standard library. Its headers fit all.
set(fmt fmt::fmt)
if(CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "-stdlib=libc" OR APPLE)
  set(fmt fmt::fmt-header-only)
endif()

add_library(common common/linalg.cpp common/memory.cpp common/random.cpp common/shapes.cpp
  common/utf8_start.cpp common/weight.cpp
  common/files/files.cpp common/files/folder_lock.cpp common/files/named_files.cpp
  common/files/new_file.cpp common/files/npy.cpp
  common/program/flag_values.cpp common/program/print.cpp common/program/program.cpp
  common/program/progress.cpp common/program/prose.cpp common/program/stop_asked.cpp
  common/program/tasks.cpp
  common/timing/measure.cpp)
target_include_directories(common PUBLIC common chapters)
target_compile_features(common PUBLIC cxx_std_20)
if(APPLE)
  target_include_directories(common SYSTEM PUBLIC ${homebrew}/include)
  target_link_directories(common PUBLIC ${homebrew}/lib)
endif()
set_source_files_properties(common/program/program.cpp PROPERTIES
  COMPILE_DEFINITIONS T2T_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  COMPILE_OPTIONS $<$<CONFIG:Release>:-Og>)  # CLI11 compiles long, and its work is none
target_link_libraries(common PUBLIC xtensor xsimd ${fmt} OpenMP::OpenMP_CXX
  PRIVATE CLI11::CLI11 ${BLAS_LIBRARY})
# To read these takes longer than the rest of most files' compilation: it is done once, for all. What
# their own pragmas silence gcc then forgets, hence some of the -Wno-… above.
set(T2T_LONG_HEADERS common/tensor.hpp <xsimd/xsimd.hpp> <fmt/format.h> <filesystem> <functional>
  <optional> <string> <variant> <vector>)
target_precompile_headers(common PRIVATE ${T2T_LONG_HEADERS})

add_executable(doctor common/timing/doctor.cpp)
target_link_libraries(doctor common)

# The work in SOURCE timed beside its limits: NAME_bench, whose main all of them share.
add_library(bench_main OBJECT EXCLUDE_FROM_ALL common/timing/bench.cpp)
target_compile_options(bench_main PRIVATE $<$<CONFIG:Release>:-Og>)  # flags and records, no work
target_link_libraries(bench_main common CLI11::CLI11)
function(t2t_bench name source)
  add_executable(${name}_bench EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name}_bench bench_main ${ARGN} ${BLAS_LIBRARY})
  target_precompile_headers(${name}_bench REUSE_FROM common)
  add_dependencies(benches ${name}_bench)
endfunction()
