// A quantized cache, with keys and values in 8 or 4 bits: chapter 05's cache with rounded rows.
//
//   8 bits   scale = max |x| / 127                            q = round(x / scale)     −127 … 127
//   4 bits   minimum = min x, scale = (max x − minimum) / 15  q = round((x − minimum) / scale)
//                                                                                         0 … 15
//   and back: scale·q (+ minimum)
//
// Each row of a head, D elements, is rounded alone on arrival, in blocks of 32. Scale and minimum
// are stored in 16 bits, the upper half of a float. They are rounded before q is computed, the
// scale up and the minimum down, so that no element is beyond the last step. The product with a
// query needs floats again: decode converts a few rows at a time, which stay in the nearest cache
// while all query heads of the group use them.
#pragma once

#include <cstdint>
#include <vector>

#include "04_causal_attention/fast/score_rule.hpp"
#include "tensor.hpp"

namespace t2t {

/// The keys, or the values, of one layer: G heads of S rows of width D.
struct QuantizedHeads {
  std::size_t bits, G, S, D;
  std::vector<std::uint8_t> q;        // [G, S, blocks, block_bytes]
  std::vector<std::uint16_t> scales;  // [G, S, blocks], each the upper half of a float
  std::vector<std::uint16_t> minima;  // [G, S, blocks], empty with 8 bits

  std::size_t blocks() const { return (D + 31) / 32; }
  /// Each block has room for 32 elements, a byte each or in 8 units of 16 bits.
  std::size_t block_bytes() const { return 4 * bits; }
};

/// Throws std::invalid_argument unless bits is 4 or 8, and G, S and D are at least 1.
QuantizedHeads make_quantized_heads(std::size_t bits, std::size_t G, std::size_t S, std::size_t D);

/// Rounds T tokens' rows into the rows first … first + T − 1 of each head. Allocates nothing. A
/// block with a NaN or an infinity becomes NaN. Throws std::invalid_argument unless x is [T, G·D]
/// and first + T is at most S.
void store_rows(ConstMatrix x,  // [T, G·D]
                std::size_t first, QuantizedHeads& to);

/// D rounded up to whole blocks of 32.
std::size_t whole_blocks(std::size_t D);

/// Head g's rows from `first` on as floats. Whole blocks are written: the rows of `to` must be
/// whole_blocks(D) or more apart. Checks nothing and never throws, so that parallel loops may call
/// it.
void load_rows(const QuantizedHeads& from, std::size_t g, std::size_t first,
               Matrix to);  // [rows, D]

std::size_t bytes(const QuantizedHeads& heads);
/// Bytes per element of a whole block, including scale and minimum: 8.5 or 5 bits.
double quantized_number_bytes(std::size_t bits);

/// One layer of one sequence.
struct QuantizedCache {
  QuantizedHeads keys, values;
  std::size_t length = 0;  // rows filled
};

/// Memory for attend_quantized: made once, used for every layer and call.
struct QuantizedScratch {
  Tensor<2> of_thread;  // [threads, floats]: keys, values and scores of one task
  Tensor<2> stretches;  // [H·P, D]: row h·P + p is the output of head h over stretch p
  Tensor<2> log_sums;   // [H, P]

  /// Enough for one query over up to S keys, with H query heads of width D, on as many threads as
  /// are in use now.
  QuantizedScratch(std::size_t S, std::size_t H, std::size_t D);
};

/// Attention of one token to the rows seen.begin … seen.end − 1, at least one. Allocates nothing.
/// Checks nothing: G divides H, and scratch was made for S, H, D and the threads in use.
void attend_quantized(ConstRow q,  // [H·D]
                      const QuantizedCache& cache, KeyRange seen,
                      Row out,  // [H·D]
                      QuantizedScratch& scratch,
                      const ScoreRule& rule = Mask::none);  // its mask is not read

}  // namespace t2t
