#include "18_experiments/shows/show_reversal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "13_training/backward/cross_entropy.hpp"
#include "18_experiments/encoders/decoder_alone.hpp"
#include "18_experiments/encoders/reversal.hpp"
#include "program/print.hpp"
#include "program/progress.hpp"
#include "timing/measure.hpp"

namespace t2t {

static constexpr std::size_t steps = 1500, pairs_a_step = 16, shortest_word = 3, longest_word = 8;
static constexpr EncoderDecoderConfig sizes{.C = 48, .H = 4, .F = 96, .L = 2, .V = letter_tokens};
static constexpr std::size_t layers_alone = 5;  // with which a decoder has as many parameters
static constexpr std::size_t most_tokens = 2 * (longest_word + 1) + 1;  // of a word and its answer

struct ReversalWords {
  std::vector<std::string> learned, held_out, longer;
};
/// Every tenth word is held out.
static ReversalWords divided(const std::string& text) {
  ReversalWords words;
  const std::vector<std::string> all = words_of(text, shortest_word, longest_word);
  for (std::size_t i = 0; i < all.size(); ++i)
    (i % 10 == 9 ? words.held_out : words.learned).push_back(all[i]);
  words.longer = words_of(text, longest_word + 1, longest_word + 1);
  return words;
}

static std::string text_of_ids(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text += id < 26 ? char('a' + id) : '?';
  return text;
}

static void show_answers(const EncoderDecoder& model, const Model& alone,
                         const ReversalWords& words) {
  Table table({"word", "encoder-decoder", "decoder alone"});
  const auto answer = [&](const auto& by, const std::string& word) {
    return text_of_ids(
        greedy_answer(letter_ids(word), start_of_word, end_of_word, word.size() + 1, by));
  };
  const auto add = [&](const std::vector<std::string>& some, std::size_t count) {
    for (std::size_t i = 0; i < count && i < some.size(); ++i) {
      const std::string& word = some[i * some.size() / count];
      table.add({word, answer(model, word), answer(alone, word)});
    }
  };
  add(words.held_out, 4), add(words.longer, 2);
  fmt::print("\n");
  table.print();
}

/// How much less likely each right letter becomes when one letter of the source is replaced, in
/// nats: [T, S].
static Tensor<2> reach_of(const EncoderDecoder& model, const std::string& word) {
  const auto loss_at = [&](TextPair pair, std::size_t t) {
    for (std::size_t i = 0; i < pair.next.size(); ++i)
      if (i != t) pair.next[i] = not_learned;
    return pair_loss(model, pair);
  };
  const TextPair pair = reversal_of(word);
  Tensor<2> reach = empty(word.size(), word.size());
  for (std::size_t s = 0; s < word.size(); ++s) {
    TextPair other = pair;
    other.source[s] = (other.source[s] + 7) % 26;
    for (std::size_t t = 0; t < word.size(); ++t)
      reach(t, s) = float(std::max(0.0, loss_at(other, t) - loss_at(pair, t)));
  }
  return reach;
}

static void show_reach(const EncoderDecoder& model, const std::string& word) {
  print_section(fmt::format("Which letter of \"{}\" each letter of the answer needs", word));
  HeatMap labels;
  for (const char c : word) labels.col_labels.emplace_back(1, c);
  labels.row_labels.assign(labels.col_labels.rbegin(), labels.col_labels.rend());
  print_heat_map(reach_of(model, word), labels);
  fmt::print("\n");
  print_paragraph(
      "Each number shows by how many nats the row's letter becomes less likely when the column's "
      "letter of the source is replaced.");
}

/// Trains a model for all steps, and adds its line to the table.
template <class AnyTrainer>
static void train(const char* name, std::uint64_t seed, const ReversalWords& words,
                  AnyTrainer& trainer, Table& table) {
  const auto began = std::chrono::steady_clock::now();
  double loss = 0;
  for (std::size_t n = 0; n < steps; ++n) {
    const double now = trainer.step().loss;
    loss += (now - loss) / double(std::min<std::size_t>(n + 1, 50));
    if (n % 25 == 0)
      show_progress(
          fmt::format("  {}, seed {}, {}  loss {:.3f} ", name, seed, steps_done(n, steps), loss));
  }
  const double seconds = seconds_since(began);
  show_progress("");
  const auto share = [&](std::span<const std::string> some) {
    return fmt::format("{:.1f} %", 100 * share_reversed(trainer.model(), some));
  };
  const std::span learned(words.learned.data(), std::min<std::size_t>(words.learned.size(), 300));
  table.add({name, std::to_string(seed), fmt::format("{:.3f}", loss), share(learned),
             share(words.held_out), share(words.longer),
             fmt::format("{:.1f}", 1e3 * seconds / double(steps))});
}

int show_reversal(const std::string& text, std::size_t seeds) {
  const ReversalWords words = divided(text);
  std::vector<TextPair> pairs;
  for (const std::string& word : words.learned) pairs.push_back(reversal_of(word));
  print_section("reversal: models that write words backwards");
  print_paragraph(fmt::format(
      "{} steps of {} words from {} with {} to {} letters; {} other words of these lengths "
      "are held out, and {} have {} letters. The encoder-decoder has {} blocks in each "
      "stack, and the decoder alone, which reads a word and its answer as one "
      "sequence, has {}.",
      steps, pairs_a_step, with_commas(words.learned.size()), shortest_word, longest_word,
      words.held_out.size(), words.longer.size(), longest_word + 1, sizes.L, layers_alone));
  fmt::print("\n");
  const StepOptions options{{3e-3f, 3e-4f, 150, steps}, {}, 1};
  const Config config = decoder_alone(sizes, layers_alone, most_tokens);
  Table table(
      {"model", ">seed", ">loss per letter", ">learned", ">held out", ">longer", ">ms per step"});
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed), random_alone(seed);
    PairTrainer both(draw_encoder_decoder(sizes, random), options, pairs, pairs_a_step, seed);
    train("encoder-decoder", seed, words, both, table);
    AloneTrainer alone(draw_decoder_alone(config, random_alone), options, pairs, pairs_a_step,
                       seed);
    train("decoder alone", seed, words, alone, table);
    if (seed < seeds) continue;
    table.print();
    show_answers(both.model(), alone.model(), words);
    show_reach(both.model(), words.held_out.at(words.held_out.size() / 2));
  }
  return 0;
}

}  // namespace t2t
