// A model's sizes and choices: a Config holds everything about a model but its learned parameters.
//
//   tokens [T]  →  embedding [V, C]  →  L blocks of width C  →  final norm  →  head [V, C]
//   →  logits [T, V]
//
// Chapter 08's BlockSettings say what a block is. The presets are published models (Radford et al.
// 2019, "Language Models are Unsupervised Multitask Learners"; Touvron et al. 2023, "LLaMA 2";
// Allal et al. 2025, "SmolLM2") and one small enough to train here. accounts.hpp counts
// parameters, work and memory from a Config alone; forward.hpp runs the model.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "08_block/differences/differences.hpp"

namespace t2t {

struct Config {
  BlockSettings block;  // for all blocks unless `layers` is given; always for the final norm
  std::size_t L;        // number of blocks
  std::size_t V;        // tokens in the vocabulary
  std::size_t T_max;    // tokens of the longest sequence that it is trained for

  bool tied = false;                       // whether the embedding's table is also the head
  bool learned_positions = false;          // whether learned positions are added to x (GPT-2)
  float embedding_scale = 1;               // of the embedding; √C in Gemma
  float logit_scale = 1;                   // of the logits; below 1 in Granite
  float logit_cap = 0;                     // logits stay between −cap and cap; 0: none
  std::vector<BlockSettings> layers = {};  // one for each of the L blocks, if they differ
};

/// The settings of block l, and of all L blocks.
const BlockSettings& settings_of(const Config& config, std::size_t l);
std::vector<BlockSettings> settings_of_all(const Config& config);

/// The differences of a model from LLaMA: those of any of its blocks, and its own.
std::vector<Difference> differences_from_llama(const Config& config);

/// "foundry-small", "gpt2", "smollm2-135m" and "llama2-7b": the smallest model first.
std::span<const std::string_view> preset_names();
/// The Config of that name. Throws std::invalid_argument, with all names, for another one.
Config preset(std::string_view name);

/// Throws std::invalid_argument, with all reasons in one message, when no model can have this
/// Config: a size is 0, setting_errors finds one in a block's settings, `layers` has entries but
/// not L, the layers differ in width, embedding_scale or logit_scale is not a finite number above
/// 0, logit_cap is neither 0 nor such a number, or there are 1e18 parameters or more.
void expect_config(const Config& config);

/// Sizes to put in place of a preset's; 0 keeps the preset's.
struct Sizes {
  std::size_t C = 0, L = 0, H = 0, G = 0, D = 0, F = 0, V = 0, T_max = 0;
  bool operator==(const Sizes&) const = default;
};
/// The Config with these sizes, all its blocks alike. When C or H changes and D is not given, D
/// becomes C / H, or 0, which expect_config refuses, if H does not divide C. When C changes and F
/// is not given, F becomes 8·C/3, rounded down, in a gated network and 4·C in a plain one.
Config resized(Config config, const Sizes& sizes);

}  // namespace t2t
