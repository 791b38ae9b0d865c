#include "13_training/backward/kept_for_backward.hpp"

#include <algorithm>

#include "rows.hpp"

namespace t2t {

std::vector<KeptBlock> make_kept(std::span<const BlockSettings> layers, std::size_t N,
                                 bool own_network) {
  std::vector<KeptBlock> kept;
  kept.reserve(layers.size());
  for (const BlockSettings& s : layers) {
    const bool gated = own_network && is_gated(s.activation),
               post_norm = s.norm_place == NormPlace::after;
    kept.push_back({.x = empty(N, s.C),
                    .q = empty(N, s.H * s.D),
                    .k = empty(N, s.G * s.D),
                    .v = empty(N, s.G * s.D),
                    .heads = empty(N, s.H * s.D),
                    .x_plus_attention = empty(N, s.C),
                    .gate = gated ? empty(N, s.F) : empty(0, 0),
                    .up = own_network ? empty(N, s.F) : empty(0, 0),
                    .x_plus_feed_forward = post_norm ? empty(N, s.C) : empty(0, 0)});
  }
  return kept;
}

/// Where a part is kept, or nullptr for one that is not.
static Tensor<2>* place_of(Part part, KeptBlock& kept) {
  switch (part) {
    case Part::q_rotated:
      return &kept.q;
    case Part::k_rotated:
      return &kept.k;
    case Part::v:
      return &kept.v;
    case Part::heads:
      return &kept.heads;
    case Part::x_plus_attention:
      return &kept.x_plus_attention;
    case Part::gate:
      return &kept.gate;
    case Part::up:
      return &kept.up;
    case Part::x_plus_feed_forward:
      return &kept.x_plus_feed_forward;
    default:
      return nullptr;
  }
}

Trace keep_in(KeptBlock& kept) {
  return [&kept](Part part, std::size_t, ConstMatrix value) {
    Tensor<2>* to = place_of(part, kept);
    if (!to || to->size() == 0) return;
    for_each_row(value.rows, value.cols,
                 [&](std::size_t t) { std::ranges::copy(value.row(t), row(*to, t).begin()); });
  };
}

std::size_t bytes(const std::vector<KeptBlock>& kept) {
  std::size_t floats = 0;
  for (const KeptBlock& block : kept)
    for (const Tensor<2>* x :
         {&block.x, &block.q, &block.k, &block.v, &block.heads, &block.x_plus_attention,
          &block.gate, &block.up, &block.x_plus_feed_forward})
      floats += x->size();
  return floats * sizeof(float);
}

}  // namespace t2t
