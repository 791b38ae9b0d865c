// Memory and timing on the device, for host code. In a program that is linked with the stand-in,
// the device is the CPU; in one linked with the GPU's build, it is a GPU. This header needs none of
// CUDA's.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace t2t {

/// Whether there is a GPU. Always false on the stand-in. Throws std::runtime_error when there is
/// one that cannot be used: its driver is older than the toolkit, or its compute capability
/// below 8.0.
bool has_gpu();
/// "NVIDIA H100 80GB HBM3", or "CPU stand-in".
std::string device_name();
/// 90 for compute capability 9.0. On the stand-in, that of the GPU that T2T_CARD names.
int compute_capability();
/// How many multiprocessors the GPU has. On the stand-in, which runs one block after another, 1.
int multiprocessors();
/// Waits for all kernels that were launched. Throws std::runtime_error with CUDA's message if one
/// failed.
void synchronize();

/// Throws std::runtime_error, with the call, its place and CUDA's message, unless status is
/// success.
void check_cuda(int status, const char* call, const char* file, int line);
#define T2T_CUDA_CHECK(call) ::t2t::check_cuda((call), #call, __FILE__, __LINE__)

/// Allocates device memory at a multiple of 256 bytes. Each byte is 0xff, so each float is NaN.
void* device_allocate(std::size_t bytes);
void device_free(void* memory) noexcept;
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_from_device(void* to, const void* from, std::size_t bytes);

/// Numbers on the device.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t size)
      : data_(static_cast<T*>(device_allocate(size * sizeof(T)))), size_(size) {}
  explicit DeviceBuffer(std::span<const T> values) : DeviceBuffer(values.size()) { upload(values); }
  ~DeviceBuffer() { device_free(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// Throws std::invalid_argument unless there are as many values as the buffer holds.
  void upload(std::span<const T> values) {
    expect_size(values.size());
    copy_to_device(data_, values.data(), size_ * sizeof(T));
  }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    copy_from_device(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  void expect_size(std::size_t got) const;

  T* data_;
  std::size_t size_;
};

[[noreturn]] void refuse_upload(std::size_t wanted, std::size_t got);
template <class T>
void DeviceBuffer<T>::expect_size(std::size_t got) const {
  if (got != size_) refuse_upload(size_, got);
}

/// Measures the time that the device's work takes.
class EventTimer {
 public:
  EventTimer();
  ~EventTimer();
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void start();
  /// Waits for the work since start() and returns its milliseconds.
  double stop_ms();

 private:
  void *start_ = nullptr, *stop_ = nullptr;
};

}  // namespace t2t
