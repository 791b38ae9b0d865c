// Experiments: small models that differ in one choice, trained alike, each at its own best learning
// rate and with several seeds. They show what a choice is worth at this size, and where a
// difference is smaller than what the seed alone does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "13_training/experiments/block_changes.hpp"
#include "13_training/trainer/trainer.hpp"

namespace t2t {

/// One side of an experiment.
struct Variant {
  std::string name;
  Config config;
  bool warm_up = true;                                                  // for a tenth of the steps
  std::function<void(ModelWeights&, const Config&)> redrawn = nullptr;  // changes the first weights
  std::function<bool(const TensorInfo&)> learned = nullptr;             // nullptr: all tensors are
  float dropout = 0;
  BlockChanges changes = {};
  float hidden = 0;  // share of tokens that are hidden, and learned instead of the next ones
  std::size_t lstm_layers = 0;  // above 0: an LSTM takes the transformer's place
  std::size_t lstm_width = 0;   // its C
};
/// How many numbers its model learns.
std::size_t parameter_count(const Variant& variant);

struct Experiment {
  std::string name, question;
  std::vector<Variant> variants;
  std::size_t steps = 300;
  bool by_position = false;  // whether positions past the trained length are measured, too
  std::size_t most_text = std::size_t(-1);  // bytes of the training text that are read
  bool dead_units = false;                  // whether they are counted (dead_units.hpp)
};

/// All of them. The models read bytes and are trained on windows of experiment_T tokens.
constexpr std::size_t experiment_B = 16, experiment_T = 64;
std::vector<Experiment> experiments();

/// The held-out loss of a run; infinity when the run ended in numbers that are not finite.
struct Trial {
  float rate;
  std::uint64_t seed;
  double held_out;
  std::size_t dead_units = 0;  // on the held-out text; of experiments that count them
};
/// What became of a variant: the sweep with seed 1, from a rate of 0.004 by factors of 2 to both
/// sides until two rates in a row are no better, then the best rate with the other seeds.
struct Outcome {
  std::vector<Trial> sweep;                    // by rate
  std::vector<Trial> seeds;                    // at the best rate, the first one from the sweep
  double seconds_a_step;                       // median over the runs
  std::vector<double> perplexity_by_position;  // up to 1, 2, 3 and 4 times the trained length
};
Outcome try_variant(const Experiment& experiment, const Variant& variant,
                    std::span<const int> train, std::span<const int> held_out, std::size_t seeds,
                    const std::function<void(const Trial&)>& after_trial = {});

/// Mean, least and largest held-out loss over the seeds.
struct Spread {
  double mean, least, most;
};
Spread spread_of(const std::vector<Trial>& trials);

}  // namespace t2t
