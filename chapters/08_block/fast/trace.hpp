// A trace is a callback that receives each intermediate result, as a forward hook does in PyTorch,
// with its name and its layer.
//
// It serves tables of shapes, times part by part, the search for the first place where two
// implementations differ (chapter 10), and what a backward pass has to keep (chapter 13). A value
// is a view of memory that the next step overwrites: take copy_of it if it should outlive the
// call. An empty trace costs one comparison for each value.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tensor.hpp"

namespace t2t {

/// In the order in which a pre-norm model makes them. The first and the last two belong to the
/// model (chapter 09), the others to a block. block_rows.hpp lists the order in post-norm. In
/// Hugging Face's code, the width of `hidden` is intermediate_size, and hidden_states are our x.
enum class Part {
  embedding,  // after a table of positions is added, if there is one
  attention_norm,
  q,  // after its bias and the norm of its heads, before RoPE
  k,
  v,
  q_rotated,  // under RoPE only, like k_rotated
  k_rotated,
  heads,                // attention's output: each head's weighted mean of values
  attention,            // the output projection of heads, heads·w_oᵀ: what is added to x
  post_attention_norm,  // with norms on both sides: what is added then
  x_plus_attention,     // the sum; in post-norm before its norm
  feed_forward_norm,
  gate,          // gated networks only; before the activation
  up,            // before it is multiplied by act(gate), or, without a gate, before the activation
  hidden,        // act(gate) · up, or act(up)
  feed_forward,  // hidden·w_downᵀ, what is added
  post_feed_forward_norm,
  x_plus_feed_forward,  // the sum; in post-norm before its norm
  final_norm,
  logits,
};
constexpr std::size_t part_count = std::size_t(Part::logits) + 1;

/// The name as it stands in the enum: "x_plus_attention".
std::string_view part_name(Part part);
bool is_of_block(Part part);
/// "layer 3 q"; without the layer for a part that belongs to no block: "logits".
std::string trace_name(Part part, std::size_t layer);

/// layer is 0 for a part that belongs to no block.
using Trace = std::function<void(Part part, std::size_t layer, ConstMatrix value)>;

inline void tell(const Trace& trace, Part part, std::size_t layer, ConstMatrix value) {
  if (trace) trace(part, layer, value);
}

}  // namespace t2t
