// How long a piece of work takes, and this machine's limits.
//
// A limit is measured with the same kind of work, in the same run and with the same number of
// threads as the work that it is compared with. Only the ratios of these figures mean something.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace t2t {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Median seconds of one call, after a warm-up, over at least three calls that fill about 0.2 s.
double median_seconds(const std::function<void()>& work);

/// Median seconds of each of two pieces of work, called alternately, so that other programs on the
/// machine disturb both alike: for ratios.
struct Pair {
  double first, second;
};
Pair median_seconds_in_turn(const std::function<void()>& first,
                            const std::function<void()>& second);

/// This machine's limits, measured at first use and kept for the run (for each number of threads).
double read_bandwidth();    // bytes/s, summing 256 MB
double copy_bandwidth();    // bytes/s read and written, 128 MB in all, with ordinary stores
double update_bandwidth();  // the same of a buffer that is overwritten in place
double product_peak();      // FLOP/s, a float32 matrix product of 1024³ through BLAS

/// The work behind read_bandwidth and copy_bandwidth, to be timed alternately with other work. A
/// copy of a buffer to itself is an in-place pass. A buffer's size is rounded up to whole blocks.
Tensor<1> limit_buffer(double bytes);
float read_all(const Tensor<1>& from);
void copy_all(const Tensor<1>& from, Tensor<1>& to);

/// Prints one line: what was timed, its time, its speed, and its share of the limit, which is this
/// machine's speed of such work.
///   rms_norm_rows [8192, 2048]  1.6 ms   84.0 GB/s   91 % of 92.0 (copying memory)
void print_roofline_bytes(const std::string& what, double seconds, double bytes, double limit,
                          const std::string& limit_name);
void print_roofline_flops(const std::string& what, double seconds, double flops);

/// The CPU's name: "AMD EPYC 9R14".
std::string machine_name();

}  // namespace t2t
