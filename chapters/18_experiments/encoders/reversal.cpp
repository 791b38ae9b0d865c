#include "18_experiments/encoders/reversal.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "shapes.hpp"

namespace t2t {

std::vector<std::string> words_of(std::string_view text, std::size_t shortest,
                                  std::size_t longest) {
  std::set<std::string> words;
  std::string word;
  bool only_letters = true;
  const auto end_word = [&] {
    if (only_letters && word.size() >= shortest && word.size() <= longest) words.insert(word);
    word.clear(), only_letters = true;
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      end_word();
    } else if (c >= 'a' && c <= 'z') {
      word += c;
    } else if (c != ',' && c != '.' && c != ':' && c != ';') {
      only_letters = false;
    }
  }
  end_word();
  return {words.begin(), words.end()};
}

std::vector<int> letter_ids(std::string_view word) {
  std::vector<int> ids;
  for (const char c : word) ids.push_back(c - 'a');
  return ids;
}

TextPair reversal_of(std::string_view word) {
  TextPair pair{letter_ids(word), {start_of_word}, letter_ids(word)};
  std::ranges::reverse(pair.next);
  pair.target.insert(pair.target.end(), pair.next.begin(), pair.next.end());
  pair.next.push_back(end_of_word);
  return pair;
}

double share_reversed(std::span<const std::string> words, const AnswerWord& answer) {
  expect(!words.empty(), "words to reverse", "at least 1", 0);
  std::size_t right = 0;
  for (const std::string& word : words) {
    std::vector<int> want = letter_ids(word);
    std::ranges::reverse(want);
    right += answer(letter_ids(word), word.size() + 1) == want;
  }
  return double(right) / double(words.size());
}

double share_reversed(const EncoderDecoder& model, std::span<const std::string> words) {
  return share_reversed(words, [&](std::span<const int> source, std::size_t most) {
    return greedy_answer(source, start_of_word, end_of_word, most, model);
  });
}

std::vector<const TextPair*> draw_pairs(std::span<const TextPair> pairs, std::size_t B,
                                        Random& random) {
  std::vector<const TextPair*> drawn;
  for (std::size_t b = 0; b < B; ++b) {
    const double place = random.next_uniform() * double(pairs.size());
    drawn.push_back(&pairs[std::min(std::size_t(place), pairs.size() - 1)]);
  }
  return drawn;
}

PairTrainer::PairTrainer(EncoderDecoder model, const StepOptions& options,
                         std::span<const TextPair> pairs, std::size_t B, std::uint64_t seed)
    : model_(std::move(model)),
      gradients_(zeros_like(model_)),
      pairs_(pairs),
      B_(B),
      random_(seed),
      optimizer_(options, tensors_of(model_), tensors_of(gradients_)) {
  expect(!pairs.empty(), "pairs to learn", "at least 1", 0);
  expect(B >= 1, "B, the pairs of a step", "at least 1", 0);
}

StepReport PairTrainer::step() {
  optimizer_.begin_step();
  const std::vector<const TextPair*> batch = draw_pairs(pairs_, B_, random_);
  std::size_t tokens = 0;
  for (const TextPair* pair : batch) tokens += pair->next.size();
  double sum = 0;
  for (const TextPair* pair : batch)
    sum += pair_loss(model_, *pair, 1 / float(tokens), &gradients_);
  return optimizer_.end_step(sum / double(tokens));
}

}  // namespace t2t
