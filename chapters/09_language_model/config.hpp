// What a model is, in sizes and choices: one Config tells everything but the numbers learned.
//
//   tokens [T]  →  embedding [V, C]  →  L blocks of width C  →  final norm  →  head [V, C]
//   →  logits [T, V]
//
// The presets are published models (Radford et al. 2019, "Language Models are Unsupervised
// Multitask Learners"; Touvron et al. 2023, "LLaMA 2"; Allal et al. 2025, "SmolLM2") and one small
// enough to train here. Norms stand before each part, as in all of these (chapter 08 has the other
// place too). accounts.hpp counts from a Config alone; model.hpp runs it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "08_block/block_weights.hpp"

namespace t2t {

/// How tokens know where they stand: q and k turned in every block, or a learned row added once.
enum class Positions { rope, learned };

struct Config {
  std::size_t C;      // width of the residual stream
  std::size_t L;      // blocks
  std::size_t H;      // query heads
  std::size_t G;      // key and value heads; divides H
  std::size_t D;      // width of a head; often C / H
  std::size_t F;      // width of the feed-forward network
  std::size_t V;      // vocabulary
  std::size_t T_max;  // longest text: what it was, or will be, trained for

  bool tied = false;  // whether the embedding's table serves as the head too
  Norm norm = Norm::rms;
  Positions positions = Positions::rope;
  Activation activation = Activation::swiglu;
  bool biases = false;  // as BlockSettings says
  Pairing pairing = Pairing::neighbours;
  float theta = 10000;  // RoPE's
  float eps = 1e-5f;    // the norms'
};

/// "foundry-small", "gpt2", "smollm2-135m" and "llama2-7b": small to large.
std::span<const std::string_view> preset_names();
/// Throws std::invalid_argument, with the names there are, for any other.
Config preset(std::string_view name);

/// Throws std::invalid_argument with every reason at once, unless a model can be made so: sizes of
/// 0, G that does not divide H, D odd under RoPE, theta or eps not above 0, biases with a gated
/// activation, or more numbers than can be counted.
void expect_config(const Config& config);

/// What each of the L blocks is made by.
BlockSettings block_settings(const Config& config);

/// Sizes that replace a preset's; 0 keeps what is there.
struct Sizes {
  std::size_t C = 0, L = 0, H = 0, G = 0, D = 0, F = 0, V = 0, T_max = 0;
  bool operator==(const Sizes&) const = default;
};
/// A preset resized. Where C or H changes and D is not given, D = C / H (0, which expect_config
/// refuses, when H does not divide C); where C changes and F is not given, F is 8·C/3, rounded
/// down, with a gate and 4·C without.
Config resized(Config config, const Sizes& sizes);

}  // namespace t2t
