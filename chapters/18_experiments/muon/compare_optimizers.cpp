#include "18_experiments/muon/compare_optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "18_experiments/muon/muon_trainer.hpp"

namespace t2t {

static Schedule schedule_of(float rate, std::size_t steps) {
  return {rate, rate / 10, steps / 10, steps};
}
static TrainingOptions training_of(const OptimizerRun& run) {
  TrainingOptions options{.B = run.B, .T = run.T, .seed = run.seed};
  options.schedule = schedule_of(run.adamw_rate, run.steps);
  return options;
}
static Trainer adamw_trainer(const OptimizerRun& run, std::span<const int> train) {
  Random random(run.seed);
  return Trainer(Model(run.config, draw_model(run.config, random)), training_of(run), train);
}
static MuonTrainer muon_trainer(const OptimizerRun& run, std::span<const int> train) {
  Random random(run.seed);
  return MuonTrainer(Model(run.config, draw_model(run.config, random)), training_of(run),
                     {.schedule = schedule_of(run.muon_rate, run.steps)}, train);
}

template <class AnyTrainer>
static double loss_after(AnyTrainer trainer, std::size_t steps, std::span<const int> held_out) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  try {
    for (std::size_t n = 0; n < steps; ++n) trainer.step();
    const double loss = trainer.loss_of(held_out);
    return std::isfinite(loss) ? loss : infinity;
  } catch (const std::runtime_error&) {  // a step whose gradient is not finite
    return infinity;
  }
}

double held_out_loss_of(const OptimizerRun& run, std::span<const int> train,
                        std::span<const int> held_out) {
  return run.muon_rate > 0 ? loss_after(muon_trainer(run, train), run.steps, held_out)
                           : loss_after(adamw_trainer(run, train), run.steps, held_out);
}

template <class AnyTrainer>
static std::vector<double> losses_in(AnyTrainer trainer, std::size_t steps) {
  std::vector<double> losses;
  for (std::size_t n = 0; n < steps; ++n) losses.push_back(trainer.step().loss);
  return losses;
}

std::vector<double> losses_of(const OptimizerRun& run, std::span<const int> train) {
  return run.muon_rate > 0 ? losses_in(muon_trainer(run, train), run.steps)
                           : losses_in(adamw_trainer(run, train), run.steps);
}

std::vector<Trial> swept(float first_rate, const std::function<double(float)>& loss_at) {
  std::vector<Trial> sweep = {{first_rate, 1, loss_at(first_rate)}};
  double best = sweep[0].held_out;
  for (const float factor : {0.5f, 2.0f}) {
    int no_better = 0;
    for (float rate = first_rate * factor; rate > 1e-4f && rate < 2 && no_better < 2;
         rate *= factor) {
      sweep.push_back({rate, 1, loss_at(rate)});
      no_better = sweep.back().held_out < best ? 0 : no_better + 1;
      best = std::min(best, sweep.back().held_out);
    }
  }
  std::ranges::sort(sweep, {}, &Trial::rate);
  return sweep;
}

const Trial& best_of(const std::vector<Trial>& sweep) {
  return *std::ranges::min_element(sweep, {}, &Trial::held_out);
}

/// Median seconds of a step of each optimizer, at rates that change nothing.
static Pair seconds_of_steps(OptimizerRun still, std::span<const int> train) {
  still.adamw_rate = still.muon_rate = 1e-12f;
  Trainer adamw = adamw_trainer(still, train);
  MuonTrainer muon = muon_trainer(still, train);
  return median_seconds_in_turn([&] { adamw.step(); }, [&] { muon.step(); });
}

OptimizerComparison compare_optimizers(
    const OptimizerRun& base, std::size_t seeds, std::span<const int> train,
    std::span<const int> held_out,
    const std::function<void(const OptimizerRun&, double)>& after_run) {
  const auto loss_of = [&](const OptimizerRun& run) {
    const double loss = held_out_loss_of(run, train, held_out);
    if (after_run) after_run(run, loss);
    return loss;
  };
  OptimizerComparison found;
  OptimizerRun adamw = base, muon = base;
  adamw.muon_rate = 0;
  const auto at_rate = [&](OptimizerRun& run, float OptimizerRun::*rate) {
    return [&loss_of, &run, rate](float value) { return run.*rate = value, loss_of(run); };
  };

  // Each sweep leaves its best rate in the run.
  found.adamw_sweep = swept(0.004f, at_rate(adamw, &OptimizerRun::adamw_rate));
  muon.adamw_rate = adamw.adamw_rate = best_of(found.adamw_sweep).rate;
  found.muon_sweep = swept(0.016f, at_rate(muon, &OptimizerRun::muon_rate));
  muon.muon_rate = best_of(found.muon_sweep).rate;
  found.rest_sweep = swept(adamw.adamw_rate, at_rate(muon, &OptimizerRun::adamw_rate));
  muon.adamw_rate = best_of(found.rest_sweep).rate;

  found.seconds_a_step = seconds_of_steps(base, train);
  const double slower = found.seconds_a_step.second / found.seconds_a_step.first;
  OptimizerRun half = muon, longer = adamw;
  half.steps = base.steps / 2;
  longer.steps = std::size_t(std::lround(double(base.steps) * slower));
  for (auto& [name, run] :
       {std::pair{"AdamW", adamw}, std::pair{"Muon", muon},
        std::pair{"Muon in half the steps", half}, std::pair{"AdamW in Muon's time", longer}}) {
    ComparedSide side{name, run, {}};
    for (side.run.seed = 1; side.run.seed <= seeds; ++side.run.seed)
      side.seeds.push_back({0, side.run.seed, loss_of(side.run)});
    found.sides.push_back(std::move(side));
  }
  return found;
}

}  // namespace t2t
