// Chapter 21: a training on several stages is the training of one process, bit by bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "21_pipeline/tiny_pipeline.hpp"
#include "support/first_difference.hpp"

namespace t2t::pipeline_training_tests {

using namespace tiny_pipeline;

/// Of some steps on each of p ranks: losses and, if wanted, norms, then the own weights.
static OnRanks trained(std::size_t p, const Config& config, const TrainingOptions& options,
                       PipelineSchedule schedule, bool norms) {
  return on_ranks(p, [&](const Communicator& ranks) {
    const std::vector<int> ids = tiny_ids();
    PipelineTrainer trainer(ranks, config, drawn_weights(config), options, ids, schedule);
    Floats found;
    for (std::size_t n = 0; n < few_steps; ++n) {
      const StepReport report = trainer.step();
      append_exactly(found, report.loss);
      if (norms) append_exactly(found, report.gradient_norm);
    }
    append(found, trainer.weights());
    return found;
  });
}

/// Chapter 13's losses of these steps, and its model after them.
static std::pair<Floats, ModelWeights> trained_alone(const Config& config,
                                                     const TrainingOptions& options) {
  const std::vector<int> ids = tiny_ids();
  Trainer trainer(Model(config, drawn_weights(config)), options, ids);
  Floats losses;
  for (std::size_t n = 0; n < few_steps; ++n) append_exactly(losses, trainer.step().loss);
  return {losses, trainer.model().weights()};
}

/// "" if each stage has these values first, and its part of these weights after them.
static std::string first_wrong_stage(const OnRanks& got, Floats values, const ModelWeights& weights,
                                     const Config& config) {
  if (!got.error.empty()) return got.error;
  const std::size_t stages = got.results.size();
  for (std::size_t s = 0; s < stages; ++s) {
    Floats want = values;
    const Floats own = stage_of(weights, config, {s, stages});
    want.insert(want.end(), own.begin(), own.end());
    if (got.results[s] != want)
      return fmt::format("stage {}: {}", s, first_difference(got.results[s], want));
  }
  return "";
}

TEST_CASE("losses and weights have the bits of chapter 13's trainer, on any number of stages") {
  struct Training {
    Config config;
    std::size_t parts;
    float dropout;
  };
  // More micro-batches than stages, not a multiple of them, fewer, and a single one.
  const Training trainings[] = {{llama(false), 8, 0}, {gpt2(false), 3, 0.1f}, {windows(), 1, 0.1f}};
  for (const auto& [config, parts, dropout] : trainings) {
    TrainingOptions options = options_of(parts, dropout);
    options.clip = 0;  // chapter 13's norm is a sum in another order
    const auto [losses, weights] = trained_alone(config, options);
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const PipelineSchedule schedule : both_schedules) {
        CAPTURE(parts);
        CAPTURE(p);
        CAPTURE(int(schedule));
        CHECK(first_wrong_stage(trained(p, config, options, schedule, false), losses, weights,
                                config) == "");
      }
  }
}

/// What one stage found, as a whole model's weights: of a tied one both copies of the table.
static ModelWeights weights_in(const Floats& found, std::size_t first, const Config& config) {
  ModelWeights weights = stage_weights(drawn_weights(config), config, {0, 1});
  for (const ListedTensor& tensor : stage_tensors(weights, config, {0, 1})) {
    std::copy_n(found.begin() + std::ptrdiff_t(first), tensor.numbers.size(),
                tensor.numbers.begin());
    first += tensor.numbers.size();
  }
  return weights;
}

TEST_CASE("with a tied table, clipping and dropout, all numbers of stages have the same bits") {
  for (const Config& config : {llama(true), gpt2(true)}) {
    TrainingOptions options = options_of(7, 0.1f);
    options.clip = 0.05;  // below every step's norm
    const OnRanks alone = trained(1, config, options, PipelineSchedule::gpipe, true);
    REQUIRE(alone.error == "");
    const std::size_t values = 2 * 3 * few_steps;
    const Floats reports(alone.results[0].begin(), alone.results[0].begin() + values);
    const ModelWeights weights = weights_in(alone.results[0], values, config);
    CHECK(std::ranges::equal(numbers_of(const_cast<Weight&>(weights.embedding)),
                             numbers_of(const_cast<Weight&>(weights.head))));
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const PipelineSchedule schedule : both_schedules) {
        CAPTURE(p);
        CAPTURE(int(schedule));
        CHECK(first_wrong_stage(trained(p, config, options, schedule, true), reports, weights,
                                config) == "");
      }
  }
}

/// The gradients of a step of chapter 13, part by part, and the sum of the losses.
static std::pair<ModelWeights, double> gradients_of(const Config& config, ModelWeights weights,
                                                    const TrainingOptions& options) {
  const std::vector<int> ids = tiny_ids();
  const Model model(config, std::move(weights));
  ModelWeights gradients = zeros_of(config);
  Gradients passes(config, options.B, options.T);
  Windows text(ids, options.T, options.seed);
  Batch batch = make_batch(options.B, options.T);
  double loss = 0;
  for (std::size_t part = 0; part < options.parts; ++part) {
    text.fill(batch, part * options.B);
    loss += passes.add(model, batch, 1 / float(options.parts * options.B * options.T), gradients);
  }
  return {std::move(gradients), loss};
}

TEST_CASE("a tied table's gradient is the embedding's plus the head's, on both of its stages") {
  // An untied model of equal weights has the two gradients apart.
  const Config tied = llama(true), apart = llama(false);
  TrainingOptions options = options_of(3);
  options.clip = 0;
  ModelWeights weights = drawn_weights(tied);
  weights.head = weights.embedding;
  auto [want, loss] = gradients_of(apart, weights, options);
  const Row embedding = numbers_of(want.embedding), head = numbers_of(want.head);
  for (std::size_t i = 0; i < head.size(); ++i) head[i] = embedding[i] = embedding[i] + head[i];
  double squares = 0;
  for (const ListedTensor& tensor : tensors_of(want, apart))
    for (const float g : tensor.numbers)
      squares += tensor.info.name == "head" ? 0 : double(g) * double(g);
  for (const std::size_t p : {1, 2, 3}) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      PipelineTrainer trainer(ranks, tied, drawn_weights(tied), options, ids,
                              PipelineSchedule::one_f_one_b);
      const StepReport report = trainer.step();
      Floats found;
      append_exactly(found, report.loss);
      // A sum in double of n terms is off by at most n·2^-53, chapter 19's by n·2^-59.
      const double bound = double(parameter_count(want)) * 0x1p-52;
      found.push_back(std::abs(report.gradient_norm / std::sqrt(squares) - 1) <= bound ? 1.f : 0.f);
      append(found, trainer.gradients());
      return found;
    });
    CAPTURE(p);
    Floats values;
    append_exactly(values, loss / double(options.parts * options.B * options.T));
    values.push_back(1);
    CHECK(first_wrong_stage(got, values, want, apart) == "");
  }
}

TEST_CASE("long messages in both directions neither hang nor mix up micro-batches") {
  Config config = small_config(64, 3, 64);  // 128 KiB in each message
  TrainingOptions options{.B = 8, .T = 64, .parts = 5};
  const auto step = [&](std::size_t p, PipelineSchedule schedule) {
    return on_ranks(p, [&](const Communicator& ranks) {
      const std::vector<int> ids = tiny_ids();
      PipelineTrainer trainer(ranks, config, drawn_weights(config), options, ids, schedule);
      Floats found;
      const StepReport report = trainer.step();
      append_exactly(found, report.loss);
      append_exactly(found, report.gradient_norm);
      return found;
    });
  };
  const OnRanks alone = step(1, PipelineSchedule::gpipe);
  REQUIRE(alone.error == "");
  for (const PipelineSchedule schedule : both_schedules)
    CHECK(first_wrong(step(3, schedule), alone.results[0]) == "");
}

TEST_CASE("a NaN on one stage is an error on all, with the same words, and no weight moves") {
  const Config config = gpt2(false);
  const OnRanks got = on_ranks(3, [&](const Communicator& ranks) -> Floats {
    const std::vector<int> ids = tiny_ids();
    ModelWeights weights = drawn_weights(config);
    weights.blocks[4].w_q.floats()(0, 0) = std::numeric_limits<float>::quiet_NaN();
    PipelineTrainer trainer(ranks, config, weights, options_of(4), ids,
                            PipelineSchedule::one_f_one_b);
    Floats before, after;
    append(before, trainer.weights());
    std::string words;
    try {
      trainer.step();
    } catch (const std::runtime_error& error) {
      words = error.what();
    }
    append(after, trainer.weights());
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    Floats found(words.begin(), words.end());
    found.push_back(std::ranges::equal(before, after, same) ? 1.f : 0.f);
    return found;
  });
  const std::string words =
      "step 1: the gradient of embedding is not finite (loss nan); wanted a lower rate or more "
      "warm-up";
  Floats want(words.begin(), words.end());
  want.push_back(1);
  CHECK(first_wrong(got, want) == "");
}

}  // namespace t2t::pipeline_training_tests
