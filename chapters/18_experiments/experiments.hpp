// Experiments: small models that differ in one choice, trained alike, each at its own best learning
// rate and with several seeds. They show what a choice is worth at this size, and where a
// difference is smaller than the seed's effect.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "13_training/trainer/trainer.hpp"
#include "18_experiments/changes/block_changes.hpp"

namespace t2t {

/// One side of an experiment.
struct Variant {
  std::string name;
  Config config;
  bool warm_up = true;                                                  // for a tenth of the steps
  std::function<void(ModelWeights&, const Config&)> redrawn = nullptr;  // changes initial weights
  std::function<bool(const TensorInfo&)> learned = nullptr;             // nullptr: all tensors are
  /// ReLU²: w_gate begins as w_up, and ReGLU, ReLU(gate)·up, is then the square of ReLU(up). Both
  /// have the same gradient at each step and stay equal, so they count as one matrix.
  bool squares = false;
  float dropout = 0;
  BlockChanges changes = {};
  float hidden = 0;  // share of tokens that are masked, and learned instead of the next ones
  std::size_t lstm_layers = 0;  // above 0: an LSTM instead of the transformer
  std::size_t lstm_width = 0;   // its C
};
/// How many parameters its model learns.
std::size_t parameter_count(const Variant& variant);

struct Experiment {
  std::string name, question;
  std::vector<Variant> variants;
  std::size_t steps = 300;
  float first_rate = 0.004f;  // of the sweep
  bool by_position = false;   // whether positions past the trained length are also measured
  std::size_t most_text = std::size_t(-1);  // bytes of the training text that are read
  bool dead_units = false;                  // whether they are counted (dead_units.hpp)
};

/// All experiments. The models read bytes and are trained on windows of experiment_T tokens.
constexpr std::size_t experiment_B = 16, experiment_T = 64;
std::vector<Experiment> experiments();

/// An experiment with models so small that it takes seconds.
Experiment short_experiment();

}  // namespace t2t
