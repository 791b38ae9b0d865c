#include <cuda_runtime.h>

#include <stdexcept>

#include "cuda/device.hpp"

namespace t2t {

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::string device_name() {
  cudaDeviceProp properties;
  T2T_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

void synchronize() { T2T_CUDA_CHECK(cudaDeviceSynchronize()); }

void check_cuda(int status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                           cudaGetErrorString(static_cast<cudaError_t>(status)));
}

void* device_allocate(std::size_t bytes) {
  void* memory = nullptr;
  T2T_CUDA_CHECK(cudaMalloc(&memory, bytes));
  T2T_CUDA_CHECK(cudaMemset(memory, 0xff, bytes));
  return memory;
}

void device_free(void* memory) noexcept { cudaFree(memory); }

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  T2T_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

void copy_from_device(void* to, const void* from, std::size_t bytes) {
  T2T_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

EventTimer::EventTimer() {
  T2T_CUDA_CHECK(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&start_)));
  T2T_CUDA_CHECK(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&stop_)));
}

EventTimer::~EventTimer() {
  cudaEventDestroy(static_cast<cudaEvent_t>(start_));
  cudaEventDestroy(static_cast<cudaEvent_t>(stop_));
}

void EventTimer::start() { T2T_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(start_))); }

double EventTimer::stop_ms() {
  float taken = 0;
  T2T_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(stop_)));
  T2T_CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(stop_)));
  T2T_CUDA_CHECK(cudaEventElapsedTime(&taken, static_cast<cudaEvent_t>(start_),
                                      static_cast<cudaEvent_t>(stop_)));
  return taken;
}

}  // namespace t2t
