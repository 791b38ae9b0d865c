#include "18_experiments/encoders/decoder_alone.hpp"

#include <algorithm>
#include <utility>

#include "03_rope/positions/positions.hpp"
#include "09_language_model/generate.hpp"
#include "18_experiments/encoders/reversal.hpp"
#include "shapes.hpp"

namespace t2t {

Config decoder_alone(const EncoderDecoderConfig& sizes, std::size_t L, std::size_t T_max) {
  BlockSettings block = llama_style(sizes.C, sizes.H, sizes.H, sizes.F);
  block.activation = sizes.activation, block.eps = sizes.eps, block.uses_rope = false;
  return {.block = block, .L = L, .V = sizes.V, .T_max = T_max, .learned_positions = true};
}

Model draw_decoder_alone(const Config& config, Random& random) {
  ModelWeights weights = draw_model(config, random);
  weights.embedding = random.normal<2>({config.V, config.block.C});
  weights.positions = sinusoidal_positions(config.T_max, config.block.C);
  return Model(config, std::move(weights));
}

void fill_with_pairs(Batch& batch, std::span<const TextPair* const> pairs) {
  expect(pairs.size() == batch.B, "pairs of the batch", "B", pairs.size());
  std::ranges::fill(batch.ids, 0);
  std::ranges::fill(batch.targets, not_learned);
  for (std::size_t b = 0; b < batch.B; ++b) {
    const auto& [source, target, next] = *pairs[b];
    const std::size_t first = b * batch.T, answer = first + source.size();
    expect(source.size() + target.size() <= batch.T, "tokens of a pair",
           "at most T = " + std::to_string(batch.T), source.size() + target.size());
    std::ranges::copy(source, &batch.ids[first]);
    std::ranges::copy(target, &batch.ids[answer]);
    std::ranges::copy(next, &batch.targets[answer]);
  }
}

std::vector<int> greedy_answer(std::span<const int> source, int start, int stop, std::size_t most,
                               const Model& model) {
  std::vector<int> prompt(source.begin(), source.end());
  prompt.push_back(start);
  ModelState state(model.config(), std::min(prompt.size() + most, model.config().T_max));
  Random unused(0);
  return generate(model, state, prompt,
                  {.most = most, .stop_tokens = {stop}, .sampling = {.temperature = 0}}, unused);
}

double share_reversed(const Model& model, std::span<const std::string> words) {
  return share_reversed(words, [&](std::span<const int> source, std::size_t most) {
    return greedy_answer(source, start_of_word, end_of_word, most, model);
  });
}

/// The options of chapter 13's trainer for these steps.
static TrainingOptions trainer_options(const StepOptions& options, std::size_t B, std::size_t T,
                                       std::uint64_t seed) {
  return {.B = B,
          .T = T,
          .schedule = options.schedule,
          .adamw = options.adamw,
          .clip = options.clip,
          .seed = seed};
}

/// The longest pair's tokens in a batch.
static std::size_t longest(std::span<const TextPair> pairs) {
  expect(!pairs.empty(), "pairs to learn", "at least 1", 0);
  std::size_t tokens = 0;
  for (const TextPair& pair : pairs)
    tokens = std::max(tokens, pair.source.size() + pair.target.size());
  return tokens;
}

AloneTrainer::AloneTrainer(Model model, const StepOptions& options, std::span<const TextPair> pairs,
                           std::size_t B, std::uint64_t seed)
    : pairs_(pairs),
      random_(seed),
      ids_(2 * longest(pairs) + 1, 0),
      batch_(make_batch(B, longest(pairs))),
      trainer_(std::move(model), trainer_options(options, B, batch_.T, seed), ids_,
               {.learned = [](const TensorInfo& info) { return info.role != Role::positions; }}) {}

StepReport AloneTrainer::step() {
  fill_with_pairs(batch_, draw_pairs(pairs_, batch_.B, random_));
  return trainer_.step_on(batch_);
}

}  // namespace t2t
