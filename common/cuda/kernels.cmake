# CUDA kernels, built in two ways from the same sources: NAME_stand_in with the C++ compiler, for
# any CPU; and NAME_gpu with nvcc, where there is a toolkit. Both define the same functions, and a
# program is linked with one of them.

option(T2T_CUDA "Build the kernels for a GPU too, where a CUDA toolkit is found" ON)
# sm_80: A100; sm_90: H100 and H200; compute_90: for newer GPUs, compiled there when a program starts.
set(T2T_CUDA_ARCHITECTURES 80-real 90-real 90-virtual CACHE STRING
  "The GPUs that kernels are built for; ./learn gpu sets the one that it finds")
set(T2T_NVCC FALSE)
if(T2T_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${T2T_CUDA_ARCHITECTURES})  # before the language is enabled
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(T2T_NVCC TRUE)
  endif()
endif()

set(on_cpu async_copy.cpp device.cpp fiber.cpp limits.cpp meetings.cpp misaligned.cpp stand_in.cpp
  static_shared.cpp tensor_core.cpp)
list(TRANSFORM on_cpu PREPEND common/cuda_on_cpu/)
add_library(stand_in EXCLUDE_FROM_ALL common/cuda/device.cpp ${on_cpu})
target_include_directories(stand_in PUBLIC common chapters)
target_compile_features(stand_in PUBLIC cxx_std_20)
target_compile_options(stand_in PUBLIC -Wno-unknown-pragmas)  # kernels say #pragma unroll
if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread")
  # Only the kernels are checked for races. fiber.cpp tells the sanitizer what orders their threads.
  target_compile_options(stand_in PRIVATE -fno-sanitize=thread)
  target_compile_definitions(stand_in PRIVATE T2T_RACE_DETECTOR)
endif()

if(T2T_NVCC)
  add_library(gpu EXCLUDE_FROM_ALL common/cuda/device.cpp common/cuda/device_gpu.cu)
  target_include_directories(gpu PUBLIC common chapters)
  target_compile_features(gpu PUBLIC cxx_std_20)
  # A kernel that spills registers is an error, and so is an array that lies in memory. Other
  # releases of ptxas than the one the kernels were made with may need a register more: a warning.
  string(REGEX MATCH "^13[.]0[.]" ptxas_known "${CMAKE_CUDA_COMPILER_VERSION}")
  if(ptxas_known)
    set(spills_are_errors ON)
  else()
    set(spills_are_errors OFF)
  endif()
  option(T2T_SPILLS_ARE_ERRORS "A kernel that spills registers ends the build" ${spills_are_errors})
  set(ptxas -Xptxas=-warn-spills,-warn-lmem-usage$<$<BOOL:${T2T_SPILLS_ARE_ERRORS}>:,-Werror>)
  # CMake 3.25 does not know C++20 for nvcc 13.
  target_compile_options(gpu PUBLIC
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;${ptxas};-lineinfo>")
  set_target_properties(gpu PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  add_executable(on_gpu EXCLUDE_FROM_ALL tests/support/on_gpu.cpp)
  target_link_libraries(on_gpu gpu)
  # A driver that is too old is named. The CUDA runtime opens the first libcuda.so.1 that it finds.
  add_library(old_driver SHARED EXCLUDE_FROM_ALL tests/kernels/old_driver.cpp)
  set_target_properties(old_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/old_driver)
  add_dependencies(on_gpu old_driver)
  add_test(NAME cuda/old_driver COMMAND on_gpu)
  set_tests_properties(cuda/old_driver PROPERTIES
    ENVIRONMENT LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/old_driver
    PASS_REGULAR_EXPRESSION "the GPU's driver supports CUDA up to 11.4")
endif()

# t2t_kernels(NAME FILES a.cu … LINK …): LINK names host libraries, and OTHER_kernels for those of
# OTHER, if it has any.
function(t2t_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK")
  # The C++ compiler compiles each .cu by way of a source of one line that includes it.
  set(includers)
  foreach(file ${arg_FILES})
    set(includer ${CMAKE_BINARY_DIR}/stand_in/${file}.cpp)
    file(CONFIGURE OUTPUT ${includer} CONTENT "#include \"${CMAKE_SOURCE_DIR}/${file}\"\n")
    list(APPEND includers ${includer})
  endforeach()
  set(ways stand_in)
  add_library(${name}_stand_in EXCLUDE_FROM_ALL ${includers})
  # For a misaligned or null access, the compiled code calls the function in misaligned.cpp.
  target_compile_options(${name}_stand_in PRIVATE -fsanitize=alignment,null
    -fsanitize-recover=alignment,null)
  if(T2T_NVCC)
    list(APPEND ways gpu)
    add_library(${name}_gpu EXCLUDE_FROM_ALL ${arg_FILES})
    set_target_properties(${name}_gpu PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  endif()
  foreach(way ${ways})
    target_link_libraries(${name}_${way} PUBLIC ${way})
    foreach(library ${arg_LINK})
      string(REGEX REPLACE "_kernels$" "_${way}" built "${library}")
      if(built STREQUAL library OR TARGET ${built})
        target_link_libraries(${name}_${way} PUBLIC ${built})
      endif()
    endforeach()
  endforeach()
endfunction()

# NAME_gpu_test: CHECKS on a GPU. Without one it is skipped, unless T2T_REQUIRE_GPU=1.
function(t2t_gpu_test name checks)
  if(T2T_NVCC)
    add_executable(${name}_gpu_test EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${checks}>)
    target_link_libraries(${name}_gpu_test doctest_main check_support ${name}_gpu)
    add_test(NAME ${name}/gpu COMMAND on_gpu $<TARGET_FILE:${name}_gpu_test>)
    set_tests_properties(${name}/gpu PROPERTIES SKIP_RETURN_CODE 77 LABELS gpu)
    add_dependencies(${name}_gpu_test on_gpu)
    add_dependencies(gpu_tests ${name}_gpu_test)
    add_dependencies(checks ${name}_gpu_test)
  endif()
endfunction()

# Mistakes of tests/kernels/faults.cu that only this sanitizer finds. In a build with it, it must
# report each of them. NAME in the expected report stands for the kernel.
add_executable(fault EXCLUDE_FROM_ALL tests/kernels/fault.cpp)
target_link_libraries(fault cuda_faults_stand_in)
function(t2t_reports sanitizer says)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*${sanitizer}")
    add_dependencies(checks fault)
    foreach(name ${ARGN})
      add_test(NAME cuda_faults/${name} COMMAND fault ${name})
      string(REPLACE NAME ${name} report "${says}")
      set_tests_properties(cuda_faults/${name} PROPERTIES PASS_REGULAR_EXPRESSION "${report}")
    endforeach()
  endif()
endfunction()
