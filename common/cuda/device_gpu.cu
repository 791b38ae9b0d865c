#include <cuda_runtime.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/device.hpp"
#include "cuda/launch_gpu.hpp"

namespace t2t {

namespace {

/// "13.0" of 13000.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

/// Kernels are built for compute capability 8.0 and newer.
void expect_new_enough() {
  const int capability = compute_capability();
  if (capability < 80)
    throw std::runtime_error("the first GPU, " + device_name() + ", has compute capability " +
                             std::to_string(capability / 10) + "." +
                             std::to_string(capability % 10) +
                             "; wanted 8.0 or newer (CUDA_VISIBLE_DEVICES chooses another GPU)");
}

}  // namespace

bool has_gpu() {
  int count = 0, driver = 0, toolkit = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  T2T_CUDA_CHECK(cudaDriverGetVersion(&driver));  // 0: there is no driver at all
  if (status == cudaErrorNoDevice || driver == 0) return false;
  T2T_CUDA_CHECK(cudaRuntimeGetVersion(&toolkit));
  if (status == cudaErrorInsufficientDriver)
    throw std::runtime_error("the GPU's driver supports CUDA up to " + version(driver) +
                             ", these kernels were built with CUDA " + version(toolkit) +
                             "; wanted a newer driver or an older toolkit");
  check_cuda(status, "cudaGetDeviceCount", __FILE__, __LINE__);
  if (count == 0) return false;
  expect_new_enough();
  return true;
}

std::string device_name() {
  cudaDeviceProp properties;
  T2T_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

int compute_capability() {
  int major = 0, minor = 0;
  T2T_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  T2T_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  return 10 * major + minor;
}

int multiprocessors() {
  int count = 0;
  T2T_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

void synchronize() { T2T_CUDA_CHECK(cudaDeviceSynchronize()); }

void check_cuda(int status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                           cudaGetErrorString(static_cast<cudaError_t>(status)));
}

void allow_shared(const LaunchSite& site, const void* kernel, std::size_t dynamic_bytes) {
  static std::map<const void*, std::size_t> allowed;
  std::size_t& so_far = allowed[kernel];
  if (dynamic_bytes <= so_far) return;
  const auto check = [&](cudaError_t status) {
    check_cuda(status, site.kernel, site.file, site.line);
  };
  cudaFuncAttributes kernel_has{};
  int most = 0, device = 0;
  check(cudaFuncGetAttributes(&kernel_has, kernel));
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const std::size_t all = kernel_has.sharedSizeBytes + dynamic_bytes;
  if (all > std::size_t(most))
    throw std::runtime_error(std::string(site.file) + ":" + std::to_string(site.line) + ": " +
                             site.kernel + ": " + std::to_string(kernel_has.sharedSizeBytes) +
                             " bytes of static and " + std::to_string(dynamic_bytes) +
                             " of dynamic shared memory: a block of " + device_name() +
                             " has at most " + std::to_string(most));
  if (all > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(dynamic_bytes)));
  so_far = dynamic_bytes;
}

int blocks_of_multiprocessor(const LaunchSite& site, const void* kernel, int threads,
                             std::size_t dynamic_bytes) {
  static std::map<std::pair<const void*, std::size_t>, int> known;
  const auto [found, is_new] = known.try_emplace({kernel, dynamic_bytes}, 0);
  if (!is_new) return found->second;
  int most = 0, device = 0;
  T2T_CUDA_CHECK(cudaGetDevice(&device));
  T2T_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (dynamic_bytes > std::size_t(most)) return 0;
  allow_shared(site, kernel, dynamic_bytes);
  check_cuda(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found->second, kernel, threads, dynamic_bytes),
      site.kernel, site.file, site.line);
  return found->second;
}

void wait_if_asked(const LaunchSite& site) {
  static const bool asked = [] {
    const char* wanted = std::getenv("T2T_SYNC");
    return wanted != nullptr && std::string(wanted) == "1";
  }();
  if (asked && launch_stream() == nullptr)
    check_cuda(cudaDeviceSynchronize(), site.kernel, site.file, site.line);
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
