// Small kernels, one for each thing that kernels may use; block_features.cu and warp_features.cu
// launch them.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/half_types.hpp"

namespace t2t {

/// [2 blocks, 3 threads in y, 4 in x]: 100·block + 10·y + x of each thread.
std::vector<int> places();
/// 64 numbers reversed within each of their blocks of 32, through static shared memory.
std::vector<float> reversed(const std::vector<float>& x);
/// Each float4's numbers in reverse order, through dynamic shared memory.
std::vector<float> reversed_fours(const std::vector<float>& x);

/// Per lane: what the shuffles bring when lane i brings i.
struct Shuffles {
  std::vector<int> from_next, flipped, up, down, up_by_eights, down_by_eights, flipped_beyond;
};
Shuffles shuffles();
/// Of lanes that bring a number each: ballot, any, all of "lane < 3", then ballot in the upper
/// half.
std::vector<unsigned> votes();

/// 64 threads: a sum of 1s, the largest number, a sum of 0.5s, how many threads changed a flag.
std::vector<float> atomics();
/// Blocks of 64 threads write their numbers 0, 1, 2 …, 64 times each. The block that is counted
/// last adds the numbers up, in each thread: 64 sums, of the second of two launches.
std::vector<int> sums_of_the_last(unsigned blocks);
/// Two pairs of warps hand numbers on, each pair at a barrier of its own.
std::vector<int> handed_on();
/// Four threads in the order in which they come to one place.
std::vector<unsigned> turns();
/// Threads from 40 on end before the barrier that the others wait at.
std::vector<int> ended_early();
/// The warp sums of 1 … 64 (per warp), by shuffles, in one of two template kernels.
std::vector<float> warp_sums(bool doubled);

/// Whether shared memory that nobody wrote is NaN in each of two blocks: static, of a template
/// kernel, dynamic. Each block writes it after it has looked.
std::vector<int> fresh_shared_is_nan();

/// x rounded to 16 bits and back: bf16, half, and the lower half of a packed pair.
std::vector<float> rounded(float x);
std::vector<float> powers_of_two(const std::vector<float>& x);

/// CUDA's scalar functions, of 4: 1/root, exp of 0, half of it, the larger, and others.
std::vector<float> functions_of_four();

/// What each lane's registers hold after ldmatrix_x4 of four 8x8 matrices: [lane, register, half].
std::vector<int> loaded_matrices(const std::vector<bf16>& four, bool transposed);
/// c + a·b by one warp. a [16, 16], b [16, 8] by its columns, c [16, 8].
std::vector<float> multiplied(const std::vector<bf16>& a, const std::vector<bf16>& b_columns,
                              const std::vector<float>& c);

/// Per number: copied asynchronously, two stages ahead, then doubled; zero from `inside` on.
std::vector<float> doubled_by_stages(const std::vector<float>& x, int inside);
/// Two copies of a 3, a group each. What the thread finds at the first before any wait; at both
/// when one may still be on its way; at the second when none may.
std::vector<float> before_and_after_wait();

}  // namespace t2t
