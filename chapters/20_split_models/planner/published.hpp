// Trainings whose layout and speed are published, and what the planner's formulas predict for them.
#pragma once

#include <span>
#include <string_view>

#include "20_split_models/planner/step_time.hpp"

namespace t2t {

/// A training with its published layout and its published FLOP/s of one device, by its authors' own
/// count of FLOPs: with a recomputed forward pass or without.
struct Published {
  std::string_view source;
  ModelShape model;
  Cluster cluster;
  Job job;
  Layout layout;
  double flops;         // per second and device
  bool fitted = false;  // whether product_efficiency was fitted to it
};

/// Narayanan et al. 2021 (arXiv 2104.04473), table 1: GPT from 1.7 to 1,008 billion weights on 32
/// to 3,072 A100, each with one sequence in a micro-batch, which is our assumption, and two chunks;
/// then Llama 3 405B (arXiv 2407.21783), table 4, on H100, with four chunks, our assumption, too.
std::span<const Published> published_trainings();

/// Trainings of which it is not known how much of their messages is hidden: GPT-3 with ZeRO-3 on
/// A100 (Narayanan et al., table 2), and DeepSeek-V3 on 2,048 H800 (arXiv 2412.19437, 180,000 GPU
/// hours for 10¹² tokens).
std::span<const Published> published_with_hidden_messages();

/// What the formulas predict for such a training, in FLOP/s of a device: with all messages that
/// take time of their own, and with all of them hidden.
double predicted_flops(const Published& training);
double predicted_if_hidden(const Published& training);

}  // namespace t2t
