// A cache by concatenation: each call joins the old keys and values with the new ones, in storage
// that is made for exactly so many rows.
//
//   keys = concatenate(keys, k)      [G, length, D] and [T, G·D] give [G, length + T, D]
//
// Many tutorials write torch.cat((cache_k, k)). The rows are those of kv_cache.hpp, but all old
// ones are copied at every call: T tokens one by one write 1 + 2 + … + T rows instead of T. This
// cache is here for comparison only; no later chapter uses it.
#pragma once

#include <cstddef>

#include "04_causal_attention/fast/attention_rows.hpp"
#include "tensor.hpp"

namespace t2t {

/// The keys and values of one layer, without room for more.
struct ConcatenatedCache {
  Tensor<3> keys;    // [G, length, D]
  Tensor<3> values;  // [G, length, D]
};

/// A cache of no rows. Throws std::invalid_argument unless G and D are at least 1.
ConcatenatedCache make_concatenated_cache(std::size_t G, std::size_t D);

/// Replaces keys and values by storage with T rows more. Returns the bytes that were written to it,
/// the old rows and the new ones. Throws std::invalid_argument unless k and v are [T, G·D].
std::size_t concatenate(ConcatenatedCache& cache,
                        ConstMatrix k,   // [T, G·D], already rotated if the model uses RoPE
                        ConstMatrix v);  // [T, G·D]

/// Views of all rows, for the kernels of attention. They are valid until the next concatenate.
KeyValueHeads concatenated_heads(const ConcatenatedCache& cache);

}  // namespace t2t
