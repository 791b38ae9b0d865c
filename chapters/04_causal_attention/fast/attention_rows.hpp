// Attention of many heads as a model runs it: each head's queries, keys and values are read where
// they lie, and all threads share the work. The tests compare it with the formula in
// multi_head.hpp.
//
//   out[t, h] = softmax(q[t, h]·keys(h)ᵀ / √D + mask) · values(h)
//
// Chapter 05's cache hands it keys and values one head after the other; chapter 06 lets several
// query heads read the same ones.
#pragma once

#include "04_causal_attention/fast/attend.hpp"

namespace t2t {

/// Where the keys and the values of G heads lie, [S, D] each: side by side in rows [S, G·D], or one
/// head after the other, as in chapter 05's cache. Owns nothing. In this chapter G is H.
struct KeyValueHeads {
  ConstMatrix first_keys, first_values;  // [S, D], those of head 0
  std::size_t G;                         // the number of heads of keys and values
  std::size_t head_stride;  // floats from one head's first element to the next's, in both

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
