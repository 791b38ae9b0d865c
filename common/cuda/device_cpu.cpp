// The CPU as the device of kernels that run on the stand-in: device memory is its own.
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

#include "cuda/device.hpp"
#include "cuda_on_cpu/stand_in.hpp"

namespace t2t {

bool has_gpu() { return false; }
std::string device_name() { return "CPU stand-in"; }
int compute_capability() {
  return stand_in::wanted_capability({"compute_capability", __FILE__, __LINE__});
}
int multiprocessors() { return 1; }
void synchronize() {}

void check_cuda(int status, const char* call, const char* file, int line) {
  if (status == 0) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call +
                           ": status " + std::to_string(status));
}

void* device_allocate(std::size_t bytes) {
  void* memory = ::operator new (bytes, std::align_val_t{256});
  std::memset(memory, 0xff, bytes);
  return memory;
}

void device_free(void* memory) noexcept { ::operator delete (memory, std::align_val_t{256}); }
void copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
void copy_from_device(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

using Clock = std::chrono::steady_clock;

EventTimer::EventTimer() : start_(new Clock::time_point) {}
EventTimer::~EventTimer() { delete static_cast<Clock::time_point*>(start_); }
void EventTimer::start() { *static_cast<Clock::time_point*>(start_) = Clock::now(); }
double EventTimer::stop_ms() {
  const auto taken = Clock::now() - *static_cast<Clock::time_point*>(start_);
  return std::chrono::duration<double, std::milli>(taken).count();
}

}  // namespace t2t
