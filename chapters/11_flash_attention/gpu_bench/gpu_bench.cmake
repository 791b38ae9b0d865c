if(T2T_NVCC)
  # The ladder timed on a GPU, beside what cuBLAS makes of it.
  find_package(CUDAToolkit)
  add_executable(11_flash_attention_gpu_bench EXCLUDE_FROM_ALL
    ${CMAKE_CURRENT_LIST_DIR}/gpu_bench.cpp ${CMAKE_CURRENT_LIST_DIR}/gpu_baselines.cu
    ${CMAKE_CURRENT_LIST_DIR}/gpu_timing.cu)
  target_link_libraries(11_flash_attention_gpu_bench 11_flash_attention_gpu)
  if(TARGET CUDA::cublas)
    target_compile_definitions(11_flash_attention_gpu_bench PRIVATE T2T_CUBLAS)
    target_link_libraries(11_flash_attention_gpu_bench CUDA::cublas)
  endif()
  add_dependencies(benches 11_flash_attention_gpu_bench)
endif()
