// How long work takes on a GPU, and what the GPU could do at most: the same in each run, so that
// its figures can be compared. Needs a GPU; matrix products need cuBLAS.
#pragma once

#include <cstddef>
#include <functional>

namespace t2t {

/// Milliseconds of one call, by the card's events.
struct Times {
  double least, median, p90;  // 90 of 100 calls take at most p90
};

/// The work is repeated for 150 ms, in which the card's clock settles under its load, and is then
/// timed for 300 ms, at least ten times. Before each timed call the card is kept busy for
/// 200 us, so that the host has launched the work by the time the card begins it: what is timed is
/// the card's time alone. `before` is called before each of these, outside of the measured time.
Times time_calls(const std::function<void()>& work, const std::function<void()>& before = {});

/// Bytes of device memory that are free now.
std::size_t free_device_memory();

/// Bytes a second of a plain copy of 1 GiB, or of as many bytes (bytes read and bytes written
/// together, after flush_l2 where `flushed`), and of a sum that only reads 2 GiB.
double copy_speed(std::size_t bytes = std::size_t(1) << 30, bool flushed = false);
double read_speed();

/// Leaves nothing of earlier calls in the L2 cache, and no changed lines that would have to be
/// written back while the next call runs: it writes 256 MiB, and then reads 256 MiB of others.
void flush_l2();

/// FLOP/s of mma.sync, the tensor cores' instruction in tensor_core.hpp, from registers alone. An
/// H100 does more with its own instruction, wgmma, which its matrix product uses.
double mma_peak();

/// Whether the build found cuBLAS. Without it the functions below throw std::runtime_error.
bool has_cublas();
/// FLOP/s of a product of two matrices [8192, 8192] with float32 sums: of bf16 numbers, and of
/// float32 numbers whose products are not rounded to fewer bits (no TF32).
double matrix_peak();
double float_matrix_peak();

}  // namespace t2t
