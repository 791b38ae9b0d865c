# The CUDA language, if there is a toolkit.
option(T2T_CUDA "Build the kernels for a GPU too, if a CUDA toolkit is found" ON)
# sm_80: A100; sm_90a: H100 and H200; compute_90: for newer GPUs, compiled there when a program starts.
set(T2T_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual CACHE STRING
  "The GPUs that kernels are built for; ./learn gpu sets the one that it finds")
if(T2T_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${T2T_CUDA_ARCHITECTURES})  # before the language is enabled
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
  endif()
endif()
