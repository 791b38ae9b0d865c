#include "08_block/choices/choices.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace t2t {

/// In the order of Choice.
static constexpr const char* words[] = {
    "other norms than RMS",
    "norms after the sums",
    "norms before and after each sublayer",
    "norms of heads",
    "norms of all heads together",
    "another network than SwiGLU",
    "biases of q, k and v",
    "biases",
    "a sliding window",
    "attention without RoPE",
    "RoPE in halves",
    "scaled frequencies",
    "another factor of scores than 1/√D",
    "capped scores",
    "experts",
    "experts whose weights do not add up to 1",
    "a network beside the experts",
    "learned positions",
    "a scaled embedding",
    "scaled logits",
    "capped logits",
    "a head that is the embedding's table",
    "layers that differ",
};
static_assert(std::size(words) == std::size_t(Choice::layers_differ) + 1);

std::vector<Choice> choices_of(const BlockSettings& settings) {
  // This names every member, so that a new one does not compile before it stands here.
  const auto& [C, H, G, D, F, norm, norm_place, activation, biases, uses_rope, theta, eps, pairing,
               frequencies, window, head_norms, heads_together, score_factor, score_cap, experts,
               chosen, normalized, shared, shared_gate] = settings;
  std::vector<Choice> choices;
  const auto list = [&](bool chosen, Choice choice) {
    if (chosen) choices.push_back(choice);
  };
  list(norm != Norm::rms, Choice::layer_norm);
  list(norm_place == NormPlace::after, Choice::norms_after);
  list(norm_place == NormPlace::both, Choice::norms_both);
  list(head_norms, Choice::head_norms);
  list(heads_together, Choice::heads_together);
  list(activation != Activation::swiglu, Choice::other_activation);
  list(biases == Biases::qkv, Choice::biases_of_qkv);
  list(biases == Biases::all, Choice::biases_of_all);
  list(window != 0, Choice::window);
  list(!uses_rope, Choice::no_rope);
  list(pairing != Pairing::neighbours, Choice::halves);
  list(!frequencies.empty(), Choice::scaled_rope);
  list(score_factor > 0, Choice::score_factor);
  list(score_cap > 0, Choice::score_cap);
  list(experts > 0, Choice::experts);
  list(experts > 0 && !normalized, Choice::plain_shares);
  list(shared > 0, Choice::shared_network);
  return choices;
}

void expect_only(const std::vector<Choice>& choices, std::initializer_list<Choice> known,
                 std::string_view what) {
  for (const Choice choice : choices)
    if (std::ranges::find(known, choice) == known.end())
      throw std::invalid_argument(std::string(what) + ": wanted one without " +
                                  words[std::size_t(choice)]);
}

}  // namespace t2t
