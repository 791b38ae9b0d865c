// Small models of five blocks, and trainings that a pipeline of up to five stages repeats.
#pragma once

#include "13_training/shows/show_gradients.hpp"
#include "19_ranks/tiny_training.hpp"
#include "21_pipeline/stages/pipeline_trainer.hpp"

namespace t2t::tiny_pipeline {

using namespace tiny_training;

constexpr std::size_t few_steps = 4;
constexpr PipelineSchedule both_schedules[] = {PipelineSchedule::gpipe,
                                               PipelineSchedule::one_f_one_b};

/// LLaMA's blocks with a tied table, or with a head of its own.
inline Config llama(bool tied) {
  Config config = small_config(8, 5, T);
  config.tied = tied;
  return config;
}
/// GPT-2's, with biases and learned positions.
inline Config gpt2(bool tied) {
  Config config = resized(preset("gpt2"), {.C = 12, .L = 5, .H = 2, .G = 2, .V = 256});
  config.T_max = T;
  config.tied = tied;
  return config;
}
/// Every other layer sees a window of three tokens, and the norms come after the sums.
inline Config windows() {
  Config config = llama(false);
  config.block.norm_place = NormPlace::after;
  for (std::size_t l = 0; l < config.L; ++l) {
    config.layers.push_back(config.block);
    if (l % 2 == 1) config.layers.back().window = 3;
  }
  return config;
}

inline ModelWeights drawn_weights(const Config& config) {
  Random random(1);
  return draw_model(config, random);
}

/// A double as three floats, which hold all of its bits.
inline void append_exactly(Floats& to, double x) {
  to.push_back(float(x));
  append(to, x - double(float(x)));
}
inline void append(Floats& to, const std::vector<ListedTensor>& tensors) {
  for (const ListedTensor& tensor : tensors)
    to.insert(to.end(), tensor.numbers.begin(), tensor.numbers.end());
}

/// What stage s of p has of a model's weights, or of a gradient.
inline Floats stage_of(const ModelWeights& weights, const Config& whole, StagePlace place) {
  ModelWeights own = stage_weights(weights, whole, place);
  Floats all;
  append(all, stage_tensors(own, whole, place));
  return all;
}

}  // namespace t2t::tiny_pipeline
