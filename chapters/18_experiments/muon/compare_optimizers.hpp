// AdamW and Muon on the same model, text and seeds, each at its own best learning rates: which loss
// they reach in equally many steps, and in equal time.
//
// Muon's side has two rates. The sweep first finds AdamW's best rate for all tensors. Then it finds
// the best rate of the matrices, while the other tensors keep AdamW's; and last that of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "18_experiments/try_variant.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// One training. Both rates rise over the first tenth of the steps, and fall along half a cosine to
/// a tenth of their peaks.
struct OptimizerRun {
  Config config;
  std::size_t steps;
  float adamw_rate;
  float muon_rate = 0;  // of the matrices inside of blocks; 0: AdamW moves them, too
  std::uint64_t seed = 1;
  std::size_t B = experiment_B, T = experiment_T;  // of a step's batch
};

/// The loss on the held-out text after a run, in nats per token, or infinity when the run ended in
/// values that are not finite.
double held_out_loss_of(const OptimizerRun& run, std::span<const int> train,
                        std::span<const int> held_out);

/// The training loss of each step of a run, in nats per token.
std::vector<double> losses_of(const OptimizerRun& run, std::span<const int> train);

/// loss_at of the first rate, and of rates from it on by factors of 2 in both directions, until two
/// rates in a row are no better than the best. By rate, all with seed 1.
std::vector<Trial> swept(float first_rate, const std::function<double(float)>& loss_at);
/// The trial with the lowest loss.
const Trial& best_of(const std::vector<Trial>& sweep);

struct ComparedSide {
  std::string name;
  OptimizerRun run;  // its rates and steps
  std::vector<Trial> seeds;
};
struct OptimizerComparison {
  std::vector<Trial> adamw_sweep, muon_sweep, rest_sweep;
  Pair seconds_a_step;              // of AdamW and of Muon: medians of steps taken in turn
  std::vector<ComparedSide> sides;  // AdamW, Muon, Muon in half the steps, AdamW in Muon's time
};
/// `base` is each side's run but for its rates and seeds. after_run is called after each training,
/// with what ran and its loss.
OptimizerComparison compare_optimizers(
    const OptimizerRun& base, std::size_t seeds, std::span<const int> train,
    std::span<const int> held_out,
    const std::function<void(const OptimizerRun&, double loss)>& after_run = {});

}  // namespace t2t
