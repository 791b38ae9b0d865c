// gpt-oss: chapter 09's model, whose slots bring what chapter 08's block does not know.
//
//   block                  gpt-oss                                  where
//   attention              a sink in each head                      StateOptions::memory
//   w_o without a bias     with a bias                              StateOptions::before_sum
//   one network            clamped experts with biases              StateOptions::network
//   layers alike           the first of every two sees a window     Config::layers
//   RoPE                   YaRN, whose ends are not rounded         BlockSettings::frequencies
//   scores q·k / √D        m²·q·k / √D                              BlockSettings::score_scale
//
// YaRN multiplies cos and sin by m = 0.1·ln(factor) + 1, for q and for k alike, so a score grows by
// m². OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card". load_gpt_oss.hpp reads its files.
#pragma once

#include <vector>

#include "03_rope/scaling/rope_scaling.hpp"
#include "09_language_model/fast/forward.hpp"
#include "25_sinks/gpt_oss/clamped_experts.hpp"

namespace t2t {

/// What a layer holds beside its BlockWeights.
struct GptOssLayer {
  Tensor<1> sinks;         // [H]
  Tensor<1> b_o;           // [C]
  ClampedExperts experts;  // E, of which a token uses `chosen`
};
struct GptOss {
  Model model;                      // embedding, norms, q, k, v, o and head; F is 0 in its blocks
  std::vector<GptOssLayer> layers;  // [L]
};
/// Throws std::invalid_argument, naming the layer, unless there are L layers whose tensors fit the
/// model.
void expect_gpt_oss(const GptOss& gpt_oss);

/// YaRN's frequencies as chapter 03's yarn_scaling has them, except that the ends of the
/// interpolation are not rounded to whole pairs ("truncate": false). gpt-oss was trained so. Throws
/// as yarn_scaling does.
Frequencies unrounded_yarn(std::size_t D, double theta, const YarnScaling& scaling);

/// The Config of a model of gpt-oss's kind: of every `period` layers, all but the last see a
/// window.
struct GptOssSizes {
  std::size_t C, H, G, D, L, V, T_max;
  std::size_t window = 128, period = 2;
  double theta = 150000;
  YarnScaling yarn = {.factor = 32, .trained = 4096};  // factor 1: plain RoPE
  float eps = 1e-5f;
};
Config gpt_oss_config(const GptOssSizes& sizes);

/// Memory for sequences of up to S tokens, for forward and generate. gpt_oss must outlive it. Of
/// the options, chunk, sequences, embedded and scored are used. Throws as ModelState and
/// expect_gpt_oss do.
ModelState gpt_oss_state(const GptOss& gpt_oss, std::size_t S, StateOptions options = {});

}  // namespace t2t
