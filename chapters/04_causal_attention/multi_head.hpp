// Many heads: H small attentions side by side, each with its own D = C / H channels of q, k and v.
//
//   q = x·w_qᵀ    k = x·w_kᵀ    v = x·w_vᵀ    out = merge(attention of each head)·w_oᵀ
//
// One head's weights are one mean a token; H heads look at H places for about the price of one.
// Vaswani et al. 2017, section 3.2.2. No bias, no positions (chapter 03 turns q and k), no cache
// (05), each query head with keys of its own (06 shares them). Chapter 08 builds it into the block.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// Head h of token t is channels h·D … h·D + D − 1 of its row: [T, H·D] to [H, T, D], and back.
/// Throws std::invalid_argument, with both numbers, when H does not divide C.
Tensor<3> split_heads(const Tensor<2>& x, std::size_t H);
Tensor<2> merge_heads(const Tensor<3>& heads);  // [H, T, D] to [T, H·D]

struct AttentionWeights {
  Tensor<2> w_q;  // [C, C] as [out, in], like every projection here
  Tensor<2> w_k;  // [C, C]
  Tensor<2> w_v;  // [C, C]
  Tensor<2> w_o;  // [C, C]
};

/// Numbers from N(0, 1/C), so that rows of size about 1 give q, k and v of size about 1.
AttentionWeights draw_attention_weights(std::size_t C, Random& random);

/// The layer as a formula: [T, C] to [T, C]. The tokens of x ask; those of memory are looked at:
/// another text's for cross attention, x itself otherwise.
/// Throws std::invalid_argument when shapes disagree, and as split_heads and expect_mask do.
Tensor<2> multi_head_attention(const Tensor<2>& x,       // [T, C]
                               const Tensor<2>& memory,  // [S, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);
Tensor<2> multi_head_attention(const Tensor<2>& x,  // [T, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);

/// The keys and the values of G heads, [S, D] each, wherever they lie: side by side in rows
/// [S, G·D], or one head after the other, as in chapter 05's cache. Owns nothing.
struct KeyValueHeads {
  ConstMatrix first_keys, first_values;  // [S, D], those of head 0
  std::size_t G;                         // heads there are
  std::size_t head_stride;  // floats from one head's first number to the next's, in both

  std::size_t S() const { return first_keys.rows; }
  std::size_t D() const { return first_keys.cols; }
  ConstMatrix keys(std::size_t g) const { return of_head(first_keys, g); }      // [S, D]
  ConstMatrix values(std::size_t g) const { return of_head(first_values, g); }  // [S, D]

 private:
  ConstMatrix of_head(ConstMatrix first, std::size_t g) const {
    return {first.data + g * head_stride, first.rows, first.cols, first.stride};
  }
};

/// The same heads, of these keys alone.
KeyValueHeads cut(const KeyValueHeads& heads, KeyRange keys);

/// Throws std::invalid_argument unless there is a head, of at least one number, whose values are
/// [S, D] as its keys are.
void expect_heads(const KeyValueHeads& heads);

/// Heads as they come from their projections. Throws std::invalid_argument unless G divides the
/// columns, and k and v are of one shape.
KeyValueHeads side_by_side(ConstMatrix k,  // [S, G·D]
                           ConstMatrix v,  // [S, G·D]
                           std::size_t G);

/// Scratch memory for attention_rows, a buffer a thread: make it once, use it for every layer.
class AttentionScratch {
 public:
  /// Room for calls of up to T queries and S keys, on as many threads as are in use now.
  AttentionScratch(std::size_t T, std::size_t S);
  std::size_t threads() const { return scores_.shape(0); }
  std::size_t floats() const { return scores_.shape(1); }  // for each thread
  Matrix rows() { return scores_; }                        // a row a thread

 private:
  Tensor<2> scores_;  // [threads, attend_floats(T, S)]
};

/// The loop that every kernel of many heads shares: heads and blocks of queries share the cores.
/// Query head h reads head h / (H / G): its own when G = H; chapter 06 has fewer. Checks nothing,
/// so shapes must fit: G divides H, scratch has thread_count() rows of attend_floats(T, S).
void attend_heads(ConstMatrix q,  // [T, H·D]
                  const KeyValueHeads& heads, Mask mask,
                  Matrix out,       // [T, H·D]; must not overlap what is read
                  Matrix scratch);  // a row a thread

/// The kernel for all heads, each read in place: as many query heads as heads of keys. Allocates
/// nothing. Throws std::invalid_argument when shapes disagree or scratch is too small, and as
/// expect_mask does.
void attention_rows(ConstMatrix q,               // [T, H·D]
                    const KeyValueHeads& heads,  // H of [S, D]
                    Mask mask,
                    Matrix out,  // [T, H·D]; must not overlap what is read
                    AttentionScratch& scratch);

}  // namespace t2t
