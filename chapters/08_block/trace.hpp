// A trace: every intermediate of a forward pass handed to a function as it is made, with its part
// and its layer.
//
// For shape tables, for timing part by part, for finding the first place where two implementations
// part (chapter 10), and for what a backward pass keeps (13). A value is a view of scratch memory:
// copy_of it if it should outlive the call. An empty trace costs one comparison a value.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "tensor.hpp"

namespace t2t {

/// In the order in which a model makes them (pre-norm). The first and the last two are the model's
/// (chapter 09), the others a block's.
enum class Part {
  embedding,  // with positions added, if any are
  attention_norm,
  q,  // after its bias and the norm of its heads
  k,
  v,
  q_turned,  // under RoPE only
  k_turned,
  heads,
  attention,
  x_plus_attention,  // in post-norm the sum, not yet brought to one size
  feed_forward_norm,
  gate,  // of a gated network only
  up,    // before the activation
  hidden,
  feed_forward,
  x_plus_feed_forward,
  final_norm,
  logits,
};
constexpr std::size_t part_count = std::size_t(Part::logits) + 1;

/// "x_plus_attention": as the enum has it.
std::string_view part_name(Part part);
bool is_of_block(Part part);
/// "layer 3 q", and "logits" for a part that belongs to no block.
std::string trace_name(Part part, std::size_t layer);

/// layer is 0 for a part that belongs to no block.
using Trace = std::function<void(Part part, std::size_t layer, ConstMatrix value)>;

inline void tell(const Trace& trace, Part part, std::size_t layer, ConstMatrix value) {
  if (trace) trace(part, layer, value);
}

}  // namespace t2t
