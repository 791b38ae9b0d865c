#include "24_delta_rule/learned/learn_recall.hpp"

#include <algorithm>

#include "13_training/backward/cross_entropy.hpp"
#include "13_training/trainer/optimizer.hpp"
#include "shapes.hpp"

namespace t2t {

DeltaLayerSettings recall_sizes() { return {.C = 32, .H = 2, .D = 8, .Dv = 8}; }

/// What each stream of a seed is for.
enum Stream : std::uint64_t { of_weights, of_training, of_stopping, of_result };

double share_recalled(const RecallModel& model, const PairsTask& task, std::size_t count,
                      std::uint64_t seed) {
  Random random(seed);
  std::size_t right = 0, asked = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const PairsText text = draw_pairs_text(task, random);
    const Tensor<2> logits = recall_logits(model, text);  // [asked, V]
    std::size_t i = 0;
    for (const int target : text.targets) {
      if (target == not_learned) continue;
      const ConstRow of_answer = row(logits, i++);
      right += std::ranges::max_element(of_answer) - of_answer.begin() == target;
    }
    asked += i;
  }
  return double(right) / double(asked);
}

std::vector<std::size_t> pairs_up_to(std::size_t pairs) {
  std::vector<std::size_t> counts;
  for (std::size_t n = 1; n < pairs; n *= 2) counts.push_back(n);
  counts.push_back(pairs);
  return counts;
}

static void expect_options(const RecallOptions& options) {
  expect_pairs(options.task);
  expect(options.steps >= 1, "steps", "at least 1", options.steps);
  expect(options.rate > 0, "rate, the learning rate at its peak", "more than 0", options.rate);
  expect(options.B >= 1, "B, the sequences of a step", "at least 1", options.B);
}

/// One step's sequences, each of 1, 2, 4 … pairs: short ones are learned first, and teach what the
/// long ones need.
static std::vector<PairsText> draw_batch(const RecallOptions& options, Random& random) {
  const std::vector<std::size_t> lengths = pairs_up_to(options.task.pairs);
  std::vector<PairsText> texts;
  for (std::size_t b = 0; b < options.B; ++b) {
    PairsTask task = options.task;
    task.pairs = lengths[std::size_t(random.next_uniform() * double(lengths.size()))];
    texts.push_back(draw_pairs_text(task, random));
  }
  return texts;
}

/// The mean over the sequences of each one's mean loss; adds its gradients.
static double batch_loss(const RecallModel& model, const std::vector<PairsText>& texts,
                         RecallModel& gradients) {
  double loss = 0;
  for (const PairsText& text : texts) {
    const double share = 1 / double(texts.size() * count_learned(text.targets));
    loss += share * recall_loss(model, text, float(share), gradients);
  }
  return loss;
}

RecallResult learn_recall(const RecallOptions& options,
                          const std::function<void(const RecallResult&)>& report) {
  expect_options(options);
  Random weights(options.seed, of_weights), training(options.seed, of_training);
  RecallModel model =
      draw_recall_model(recall_sizes(), options.task.V(), mixers_of(options.kind), weights);
  RecallModel gradients = zeros_like(model);
  Optimizer optimizer(
      {.schedule = {options.rate, options.rate / 10, options.steps / 20, options.steps}},
      tensors_of(model), tensors_of(gradients));
  const auto share = [&](std::size_t pairs, Stream stream, std::size_t count) {
    PairsTask task = options.task;
    task.pairs = pairs;
    return share_recalled(model, task, count, seed_of(SeedOf::stream, options.seed, stream));
  };
  for (std::size_t n = 1; n <= options.steps; ++n) {
    optimizer.begin_step();
    optimizer.end_step(batch_loss(model, draw_batch(options, training), gradients));
    if (n % 50 != 0) continue;
    const RecallResult so_far{n, share(options.task.pairs, of_stopping, 32)};
    if (report) report(so_far);
    if (so_far.share >= 0.99) break;
  }
  RecallResult result{optimizer.steps_done(), 0};
  for (const std::size_t pairs : pairs_up_to(options.task.pairs))
    result.by_pairs.push_back(share(pairs, of_result, 128));
  result.share = result.by_pairs.back();
  return result;
}

}  // namespace t2t
