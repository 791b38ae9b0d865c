// How long something takes, and what this machine could do at best.
//
// A limit is measured as the same kind of work, in the same run and with the same number of threads
// as what it is held against: these figures are only good as ratios.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// Median seconds of one call, after a warm-up, over at least three calls that fill about 0.2 s.
double median_seconds(const std::function<void()>& work);

/// Median seconds of each of two pieces of work, called in turn, so that both meet the same
/// disturbances: for ratios on a shared machine.
struct Pair {
  double first, second;
};
Pair median_seconds_in_turn(const std::function<void()>& first,
                            const std::function<void()>& second);

/// This machine's limits, measured at first use and kept for the run (for each number of threads).
double read_bandwidth();    // bytes/s, summing 256 MB
double copy_bandwidth();    // bytes/s read and written, 128 MB in all, with ordinary stores
double update_bandwidth();  // the same of a buffer written over in place
double product_peak();      // FLOP/s, a float32 matrix product of 1024³ through BLAS

/// The work that the first two time, spread over the cores in blocks. For timing in turn with
/// other work; a copy of a buffer to itself is an update. Buffers are of whole blocks.
Tensor<1> limit_buffer(double bytes);
float read_all(const Tensor<1>& from);
void copy_all(const Tensor<1>& from, Tensor<1>& to);

/// Prints one line: what, its size, its time, its speed, and the share of the limit.
///   rms_norm_rows [8192, 2048]  1.6 ms   84.0 GB/s   91 % of a copy (92.0)
void print_roofline_bytes(const std::string& what, double seconds, double bytes, double limit,
                          const std::string& limit_name);
void print_roofline_flops(const std::string& what, double seconds, double flops);

/// The CPU's name: "AMD EPYC 9R14".
std::string machine_name();

}  // namespace t2t
