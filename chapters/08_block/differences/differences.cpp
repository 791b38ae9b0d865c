#include "08_block/differences/differences.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace t2t {

/// In the order of Difference.
static constexpr const char* words[] = {
    "norms other than RMSNorm",
    "post-norm",
    "norms before and after each sublayer",
    "QK-norm",
    "QK-norm of all heads together",
    "a feed-forward network other than SwiGLU",
    "biases of q, k and v",
    "biases",
    "a sliding window",
    "attention without RoPE",
    "RoPE with the pairing halves",
    "scaled frequencies",
    "a score scale other than 1/√D",
    "capped scores",
    "experts",
    "experts whose weights do not add up to 1",
    "a shared expert",
    "learned positions",
    "a scaled embedding",
    "scaled logits",
    "capped logits",
    "tied weights",
    "layers that differ",
};
static_assert(std::size(words) == std::size_t(Difference::layers_differ) + 1);

std::vector<Difference> differences_from_llama(const BlockSettings& settings) {
  // This names every member, so that a new one does not compile before it stands here.
  const auto& [C, H, G, D, F, norm, norm_place, activation, biases, uses_rope, theta, eps, pairing,
               frequencies, window, head_norms, heads_together, score_scale, score_cap, experts,
               chosen, normalized, shared, shared_gate] = settings;
  std::vector<Difference> differences;
  const auto list = [&](bool differs, Difference difference) {
    if (differs) differences.push_back(difference);
  };
  list(norm != Norm::rms, Difference::layer_norm);
  list(norm_place == NormPlace::after, Difference::norms_after);
  list(norm_place == NormPlace::both, Difference::norms_both);
  list(head_norms, Difference::head_norms);
  list(heads_together, Difference::heads_together);
  list(activation != Activation::swiglu, Difference::other_activation);
  list(biases == Biases::qkv, Difference::biases_of_qkv);
  list(biases == Biases::all, Difference::biases_of_all);
  list(window != 0, Difference::window);
  list(!uses_rope, Difference::no_rope);
  list(pairing != Pairing::neighbours, Difference::halves);
  list(!frequencies.empty(), Difference::scaled_rope);
  list(score_scale > 0, Difference::score_scale);
  list(score_cap > 0, Difference::score_cap);
  list(experts > 0, Difference::experts);
  list(experts > 0 && !normalized, Difference::unnormalized_experts);
  list(shared > 0, Difference::shared_network);
  return differences;
}

void expect_only(const std::vector<Difference>& differences,
                 std::initializer_list<Difference> known, std::string_view what) {
  for (const Difference difference : differences)
    if (std::ranges::find(known, difference) == known.end())
      throw std::invalid_argument(std::string(what) + ": wanted one without " +
                                  words[std::size_t(difference)]);
}

}  // namespace t2t
