# What is timed on a GPU, beside its limits and what cuBLAS makes of the same work.
if(T2T_NVCC)
  find_package(CUDAToolkit)
  add_library(gpu_timing EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/gpu_report.cpp
    ${CMAKE_CURRENT_LIST_DIR}/gpu_timing.cu)
  target_link_libraries(gpu_timing PUBLIC gpu)
  if(TARGET CUDA::cublas)
    target_compile_definitions(gpu_timing PUBLIC T2T_CUBLAS)
    target_link_libraries(gpu_timing PUBLIC CUDA::cublas)
  endif()
endif()

# NAME_gpu_bench: the files given, with NAME's kernels.
function(t2t_gpu_bench name)
  if(T2T_NVCC)
    t2t_in_rooms(files chapters/${name}/ ${ARGN})
    add_executable(${name}_gpu_bench EXCLUDE_FROM_ALL ${files})
    target_link_libraries(${name}_gpu_bench ${name}_gpu gpu_timing)
    add_dependencies(benches ${name}_gpu_bench)
  endif()
endfunction()
