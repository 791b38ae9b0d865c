#include "18_experiments/try_variant.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "18_experiments/changes/dead_units.hpp"
#include "18_experiments/changes/masking.hpp"
#include "18_experiments/lstm/lstm_model.hpp"
#include "timing/measure.hpp"

namespace t2t {

static LstmModel new_lstm(const Variant& variant, Random& random) {
  return draw_lstm_model(variant.config.V, variant.lstm_width, variant.lstm_layers, random);
}

static TrainingOptions options_of(const Experiment& experiment, const Variant& variant,
                                  const Trial& trial) {
  TrainingOptions options{
      .B = experiment_B, .T = experiment_T, .dropout = variant.dropout, .seed = trial.seed};
  options.schedule = {trial.rate, trial.rate / 10, variant.warm_up ? experiment.steps / 10 : 0,
                      experiment.steps};
  return options;
}

static Trainer new_trainer(const Variant& variant, const TrainingOptions& options,
                           std::span<const int> train) {
  Random random(options.seed);
  Config config = variant.config;
  ModelWeights weights = draw_model(config, random);
  if (variant.redrawn) variant.redrawn(weights, config);
  if (!variant.changes.norms) take_norms_away(config, weights);
  TrainingHooks hooks{.learned = variant.learned, .functions = functions_of(variant.changes)};
  if (variant.hidden > 0)
    hooks.prepare = [share = variant.hidden](Batch& batch, std::uint64_t seed) {
      hide_tokens(batch, share, seed);
    };
  return Trainer(Model(config, std::move(weights)), options, train, std::move(hooks));
}

/// Trains a model, and reports its result. Returns the seconds per step.
template <class AnyTrainer>
static double train(const Experiment& experiment, AnyTrainer& trainer,
                    std::span<const int> held_out, Trial& trial) {
  const auto began = std::chrono::steady_clock::now();
  trial.held_out = std::numeric_limits<double>::infinity();
  try {
    for (std::size_t n = 0; n < experiment.steps; ++n) trainer.step();
    const double loss = trainer.loss_of(held_out);
    if (std::isfinite(loss)) trial.held_out = loss;
  } catch (const std::runtime_error&) {  // a step whose gradient is not finite
  }
  return seconds_since(began) / double(experiment.steps);
}

/// Perplexity of sequences of four times the trained length, quarter by quarter.
static std::vector<double> far_perplexity(const Model& model, const BlockChanges& changes,
                                          std::span<const int> held_out) {
  constexpr std::size_t quarters = 4, length = quarters * experiment_T;
  Gradients passes(model.config(), 1, length, functions_of(changes));
  Batch text = make_batch(1, length);
  std::vector<double> perplexity;
  for (std::size_t q = 0; q < quarters; ++q) {
    double sum = 0;
    std::size_t scored = 0;
    for (std::size_t first = 0; first + length < held_out.size(); first += length) {
      fill_in_order(text, held_out, first);
      for (std::size_t t = 0; t < length; ++t)
        if (t / experiment_T != q) text.targets[t] = not_learned;
      sum += passes.loss(model, text), scored += experiment_T;
    }
    perplexity.push_back(std::exp(sum / double(scored)));
  }
  return perplexity;
}

/// Trains one side of an experiment as often as asked.
struct Side {
  const Experiment& experiment;
  const Variant& variant;
  std::span<const int> text, held_out;
  std::size_t seeds;
  const std::function<void(const Trial&)>& after_trial;
  std::vector<double> seconds, perplexity_by_position;  // of each trial; of the one that is shown
  double lowest = std::numeric_limits<double>::infinity();

  Trial run(float rate, std::uint64_t seed) {
    Trial trial{rate, seed, 0};
    const TrainingOptions options = options_of(experiment, variant, trial);
    if (variant.lstm_layers > 0) {
      Random random(seed);
      LstmTrainer trainer(new_lstm(variant, random), options, text);
      measure(trainer, trial);
    } else {
      Trainer trainer = new_trainer(variant, options, text);
      measure(trainer, trial);
      if (experiment.dead_units)
        trial.dead_units = count_dead_units(trainer.model(), held_out, experiment_T);
      look_at_positions(trainer.model(), trial);
    }
    return trial;
  }

 private:
  template <class AnyTrainer>
  void measure(AnyTrainer& trainer, Trial& trial) {
    seconds.push_back(train(experiment, trainer, held_out, trial));
    if (after_trial) after_trial(trial);
  }

  /// Of the last run at the best rate; with one seed, of the best run of the sweep.
  void look_at_positions(const Model& model, const Trial& trial) {
    const bool shown = seeds > 1 ? trial.seed == seeds : trial.held_out < lowest;
    lowest = std::min(lowest, trial.held_out);
    if (experiment.by_position && shown && std::isfinite(trial.held_out))
      perplexity_by_position = far_perplexity(model, variant.changes, held_out);
  }
};

/// All rates that were tried, and the best trial: from the middle down, then up. Losses are noisy:
/// one rate that is no better ends nothing.
static std::pair<std::vector<Trial>, Trial> sweep_rates(Side& side) {
  const float middle = side.experiment.first_rate;
  Trial best = side.run(middle, 1);
  std::vector<Trial> sweep = {best};
  for (const float factor : {0.5f, 2.0f}) {
    int no_better = 0;
    for (float rate = middle * factor; rate > 1e-4f && rate < 1 && no_better < 2; rate *= factor) {
      sweep.push_back(side.run(rate, 1));
      no_better = sweep.back().held_out < best.held_out ? 0 : no_better + 1;
      if (no_better == 0) best = sweep.back();
    }
  }
  std::ranges::sort(sweep, {}, &Trial::rate);
  return {sweep, best};
}

Outcome try_variant(const Experiment& experiment, const Variant& variant,
                    std::span<const int> train_ids, std::span<const int> held_out,
                    std::size_t seeds, const std::function<void(const Trial&)>& after_trial) {
  const auto text = train_ids.first(std::min(train_ids.size(), experiment.most_text));
  Side side{experiment, variant, text, held_out, seeds, after_trial, {}, {}};
  const auto [sweep, best] = sweep_rates(side);
  Outcome outcome;
  outcome.sweep = sweep, outcome.seeds = {best};
  for (std::uint64_t seed = 2; seed <= seeds; ++seed)
    outcome.seeds.push_back(side.run(best.rate, seed));
  outcome.perplexity_by_position = side.perplexity_by_position;
  std::vector<double>& seconds = side.seconds;
  std::ranges::nth_element(seconds, seconds.begin() + long(seconds.size() / 2));
  outcome.seconds_a_step = seconds[seconds.size() / 2];
  return outcome;
}

Spread spread_of(const std::vector<Trial>& trials) {
  Spread spread{0, trials.at(0).held_out, trials[0].held_out};
  for (const Trial& trial : trials) {
    spread.mean += trial.held_out / double(trials.size());
    spread.least = std::min(spread.least, trial.held_out);
    spread.most = std::max(spread.most, trial.held_out);
  }
  return spread;
}

}  // namespace t2t
