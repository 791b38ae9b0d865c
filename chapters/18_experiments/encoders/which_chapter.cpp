#include "18_experiments/encoders/which_chapter.hpp"

#include <algorithm>
#include <string>

#include "13_training/text/ngram.hpp"
#include "shapes.hpp"

namespace t2t {

/// A window in sequence b of the batch.
static void put_window(Batch& batch, std::size_t b, std::span<const int> window, int number) {
  const std::size_t first = b * batch.T, last = first + batch.T - 1;
  std::ranges::copy(window, batch.ids.begin() + long(first));
  batch.ids[last] = class_token;
  std::fill_n(batch.targets.begin() + long(first), batch.T, not_learned);
  batch.targets[last] = number;
}

void draw_windows(Batch& batch, std::span<const std::vector<int>> texts, Random& random) {
  expect(!texts.empty(), "texts to draw windows from", "at least 1", 0);
  const std::size_t length = batch.T - 1;
  const auto draw = [&](std::size_t below) {
    return std::min(std::size_t(random.next_uniform() * double(below)), below - 1);
  };
  for (std::size_t b = 0; b < batch.B; ++b) {
    const std::size_t number = draw(texts.size());
    const std::span<const int> text = texts[number];
    expect(text.size() >= length, "tokens of a sequence", "at least " + std::to_string(length),
           text.size());
    put_window(batch, b, text.subspan(draw(text.size() - length + 1), length), int(number));
  }
}

void set_window(Batch& batch, std::span<const int> window, int number) {
  expect(batch.B == 1, "B of a batch for one window", "1", batch.B);
  expect(window.size() + 1 == batch.T, "tokens of a window", std::to_string(batch.T - 1),
         window.size());
  put_window(batch, 0, window, number);
}

/// The share of windows of which classify(window) gives the number of their text.
template <class Classify>
static double share_right(std::size_t T, std::span<const std::vector<int>> texts, std::size_t most,
                          Classify classify) {
  std::size_t right = 0, all = 0;
  for (std::size_t number = 0; number < texts.size(); ++number) {
    const std::span<const int> text = texts[number];
    const std::size_t windows = std::min(most, text.size() / (T - 1));
    for (std::size_t i = 0; i < windows; ++i)
      right += classify(text.subspan(i * (T - 1), T - 1)) == number;
    all += windows;
  }
  expect(all > 0, "windows to recognize", "at least 1", 0);
  return double(right) / double(all);
}

/// The number of the smallest of loss(0), loss(1) …
template <class Loss>
static std::size_t with_least(std::size_t count, Loss loss) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < count; ++i) losses.push_back(loss(i));
  return std::size_t(std::ranges::min_element(losses) - losses.begin());
}

double share_recognized(const Model& model, Gradients& passes, std::size_t T,
                        std::span<const std::vector<int>> texts, std::size_t most) {
  Batch batch = make_batch(1, T);
  return share_right(T, texts, most, [&](std::span<const int> window) {
    return with_least(texts.size(), [&](std::size_t number) {
      set_window(batch, window, int(number));
      return passes.loss(model, batch);
    });
  });
}

double share_recognized_by_counts(std::span<const std::vector<int>> train, std::size_t T,
                                  std::span<const std::vector<int>> texts, std::size_t most) {
  std::vector<NgramModel> models;
  for (const std::vector<int>& text : train) models.emplace_back(text, 256);
  return share_right(T, texts, most, [&](std::span<const int> window) {
    return with_least(models.size(),
                      [&](std::size_t number) { return ngram_loss(models[number], window); });
  });
}

}  // namespace t2t
