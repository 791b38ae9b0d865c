// The blocks that chapter 08's tests run, and what it takes to run one.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "03_rope/scaling/rope_scaling.hpp"
#include "08_block/block.hpp"
#include "08_block/fast/cached_attention.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/hashed_weights.hpp"

namespace t2t {

struct Case {
  std::string name;
  std::size_t T;
  BlockSettings settings;

  Tensor<2> x() const { return numbers(1, 4, 0, T, settings.C); }
  Tensor<2> want() const { return load_npy<2>(T2T_FIXTURES "/" + name + ".npy"); }
  RopeTable table() const { return block_rope_table(settings, T); }
  BlockWeights weights() const {
    BlockWeights weights;
    for_each_tensor(weights, settings,
                    [](const TensorInfo& info, auto& tensor) { fill_numbers(info, 0, tensor); });
    return weights;
  }

  // Errors of either sign: a sum of K products keeps about √K·u of its size, u being 2^-24. The
  // norms, two or four, five products and two sums follow one another. A score's own error (a score
  // of up to 4, a sum of D) is a relative error of its weight.
  double bound(double largest) const {
    const auto& s = settings;
    const double K = 4 * std::sqrt(s.C) + 4 * std::sqrt(s.D) + std::sqrt(T) + std::sqrt(s.H * s.D) +
                     std::sqrt(s.F);
    return K * 0x1p-24 * largest;
  }
};

inline Case llama() { return {"llama", 37, {.C = 96, .H = 6, .G = 2, .D = 16, .F = 160}}; }
inline std::vector<Case> cases() {
  Case odd{"odd", 7, {.C = 25, .H = 3, .G = 1, .D = 10, .F = 33}};
  odd.settings.pairing = Pairing::halves, odd.settings.theta = 500, odd.settings.eps = 1e-2f;
  Case llama_post{"llama_post", 11, {.C = 24, .H = 4, .G = 2, .D = 6, .F = 31}};
  llama_post.settings.norm_place = NormPlace::after;
  Case gpt2{"gpt2", 19, gpt2_style(48, 4)};
  Case post{"post", 11, gpt2_style(24, 3)};
  post.settings.F = 50, post.settings.activation = Activation::relu;
  post.settings.norm_place = NormPlace::after;
  Case windowed = llama();
  windowed.name = "windowed", windowed.settings.window = 5;
  // Of eight pairs two keep their frequency, one is blended and five are slowed by 8.
  Case scaled = llama();
  scaled.name = "scaled", scaled.settings.theta = 500;
  scaled.settings.frequencies =
      llama3_scaling(rope_frequencies(16, 500), {.factor = 8, .low = 1, .high = 4, .trained = 64});
  Case qkv_biases{"qkv_biases", 11, {.C = 40, .H = 4, .G = 2, .D = 10, .F = 33}};
  qkv_biases.settings.biases = Biases::qkv, qkv_biases.settings.pairing = Pairing::halves;
  Case head_norms{"head_norms", 11, {.C = 30, .H = 4, .G = 2, .D = 10, .F = 33}};
  head_norms.settings.head_norms = true, head_norms.settings.pairing = Pairing::halves;
  Case both{"both", 19, {.C = 40, .H = 4, .G = 2, .D = 10, .F = 33}};
  both.settings.norm_place = NormPlace::both, both.settings.activation = Activation::geglu_tanh;
  both.settings.pairing = Pairing::halves, both.settings.window = 4;
  Case both_layer_norms{"both_layer_norms", 7, gpt2_style(24, 3)};
  both_layer_norms.settings.F = 31, both_layer_norms.settings.norm_place = NormPlace::both;
  return {llama(),    odd,  windowed, scaled, qkv_biases,      head_norms,
          llama_post, gpt2, post,     both,   both_layer_norms};
}

/// What a block needs beside x: caches for S positions, and room for calls of up to max_run_rows
/// rows of each text.
struct Room {
  CachedAttention attention;
  BlockScratch scratch;
  BlockFunctions functions;
  Room(const BlockSettings& settings, std::size_t S, std::size_t max_run_rows,
       std::size_t texts = 1, AttentionKernel kernel = {})
      : attention({&settings, 1}, S, max_run_rows, texts, kernel),
        scratch(settings, max_run_rows * texts),
        functions{.attention = std::ref(attention)} {}
  /// x in place, as one text's rows from this position on.
  void run(Matrix x, const Block& block, std::size_t position = 0, const Trace& trace = {}) {
    block_rows(x, Run{0, position, x.rows}, block, functions, scratch, trace);
  }
};

/// x in place, in chunks of at most this many tokens.
inline Tensor<2> in_chunks(const Case& c, std::size_t chunk, AttentionKernel kernel = {}) {
  const BlockWeights weights = c.weights();
  const Block block(c.settings, weights);
  Room room(c.settings, c.T, chunk, 1, kernel);
  Tensor<2> x = c.x();
  for (std::size_t t = 0; t < c.T; t += chunk)
    room.run(Matrix(x).rows_from(t, std::min(chunk, c.T - t)), block, t);
  return x;
}

inline float largest(const Tensor<2>& x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace t2t
