// Several heads: H attentions side by side, each on its own D = C / H channels of q, k and v.
//
//   q = x·w_qᵀ    k = x·w_kᵀ    v = x·w_vᵀ    out = merge(attention of each head)·w_oᵀ
//
// One head gives each token one mean; H heads give it H means, for about the same number of
// multiplications. Vaswani et al. 2017, section 3.2.2. The projections have no biases (GPT-2's
// have), no positions are put in (chapter 03 turns q and k), nothing is kept for later calls (05),
// and each query head has keys of its own (06 shares them). Chapter 08 uses it in its block.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// Head h of token t is channels h·D … h·D + D − 1 of its row: [T, C] to [H, T, D] with D = C / H,
/// and back. Throws std::invalid_argument, with both numbers, when H does not divide C.
Tensor<3> split_heads(const Tensor<2>& x, std::size_t H);
Tensor<2> merge_heads(const Tensor<3>& heads);  // [H, T, D] to [T, H·D]

struct AttentionWeights {
  Tensor<2> w_q;  // [C, C] as [out, in], like every projection here
  Tensor<2> w_k;  // [C, C]
  Tensor<2> w_v;  // [C, C]
  Tensor<2> w_o;  // [C, C]
};

/// Numbers from N(0, 1/C), so that from tokens of variance 1 come q, k and v of variance about 1.
/// Drawn in the order w_q, w_k, w_v, w_o, each row by row.
AttentionWeights draw_attention_weights(std::size_t C, Random& random);

/// The layer as a formula, [T, C] to [T, C]. Queries come from x, keys and values from memory,
/// which is another text in cross attention and x itself otherwise. Throws std::invalid_argument
/// when shapes disagree, and as split_heads and expect_mask do.
Tensor<2> multi_head_attention(const Tensor<2>& x,       // [T, C]
                               const Tensor<2>& memory,  // [S, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);
Tensor<2> multi_head_attention(const Tensor<2>& x,  // [T, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);

/// Where the keys and the values of G heads lie, [S, D] each: side by side in rows [S, G·D], or one
/// head after the other, as in chapter 05's cache. Owns nothing. In this chapter G is H.
struct KeyValueHeads {
  ConstMatrix first_keys, first_values;  // [S, D], those of head 0
  std::size_t G;                         // the number of heads of keys and values
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

/// The same heads with these keys and their values alone: attend_heads gives each block of queries
/// only the keys that it sees.
KeyValueHeads cut(const KeyValueHeads& heads, KeyRange keys);

/// Throws std::invalid_argument unless G and D are at least 1 and the values have the keys' shape,
/// [S, D].
void expect_heads(const KeyValueHeads& heads);

/// Heads as their projections leave them. Throws std::invalid_argument unless G divides the number
/// of columns, and k and v have one shape.
KeyValueHeads side_by_side(ConstMatrix k,  // [S, G·D]
                           ConstMatrix v,  // [S, G·D]
                           std::size_t G);

/// Scratch memory for attention_rows, one buffer for each thread. Make it once and use it for every
/// layer.
class AttentionScratch {
 public:
  /// Room for calls of up to T queries and S keys, on as many threads as are in use now.
  AttentionScratch(std::size_t T, std::size_t S);
  std::size_t threads() const { return scores_.shape(0); }
  std::size_t floats() const { return scores_.shape(1); }  // for each thread
  Matrix rows() { return scores_; }                        // one row for each thread

 private:
  Tensor<2> scores_;  // [threads, attend_floats(T, S)]
};

/// Runs attend for every head and every block of queries, on all threads. Query head h reads the
/// keys and values of head h / (H / G): its own when G = H, as here; in chapter 06 G is smaller.
/// Checks nothing: G must divide H, and scratch must have thread_count() rows of attend_floats(T,
/// S).
void attend_heads(ConstMatrix q,  // [T, H·D]
                  const KeyValueHeads& heads, const ScoreRule& rule,
                  Matrix out,       // [T, H·D]; must not overlap what is read
                  Matrix scratch);  // one row for each thread

/// The row kernel for all heads, each read in place: there are as many query heads as heads of
/// keys. Allocates nothing. Throws std::invalid_argument when shapes disagree, when scratch has too
/// few floats for a thread or fewer rows than threads are in use, and as expect_mask does.
void attention_rows(ConstMatrix q,               // [T, H·D]
                    const KeyValueHeads& heads,  // H of [S, D]
                    Mask mask,
                    Matrix out,  // [T, H·D]; must not overlap what is read
                    AttentionScratch& scratch);

}  // namespace t2t
