#include "08_block/shows/figure.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "08_block/fast/cached_attention.hpp"
#include "figure/figure.hpp"
#include "shapes.hpp"

namespace t2t {

/// "[64, 256]" by the name of a result or of a weight.
using Shapes = std::map<std::string, std::string, std::less<>>;

static Shapes shapes_in(const Tensor<2>& x, const BlockSettings& settings, Random& random) {
  Shapes shapes;
  const auto note = [&](std::string_view name, std::size_t rows, std::size_t cols) {
    const bool vector = cols == 1;
    shapes.emplace(name,
                   vector ? shape_text(std::array{rows}) : shape_text(std::array{rows, cols}));
  };
  const std::size_t T = x.shape(0);
  const BlockWeights weights = draw_block(settings, random);
  const Block block(settings, weights);
  CachedAttention attention(settings, T, T);
  BlockScratch scratch(settings, T);
  Tensor<2> y = x;  // [T, C]
  block_rows(y, Run{0, 0, T}, block, {.attention = std::ref(attention)}, scratch,
             [&](Part part, std::size_t, ConstMatrix value) {
               note(part_name(part), value.rows, value.cols);
             });
  for_each_tensor(weights, settings, [&](const TensorInfo& info, const auto&) {
    note(info.name, info.rows, info.cols);
  });
  return shapes;
}

namespace {

constexpr double rail = 54, left = 166, right = 530, high = 44;
constexpr double third = (right - left - 20) / 3, half = (right - left - 10) / 2;

/// The boxes of one block, from top to bottom.
class Drawing {
 public:
  Drawing(const Tensor<2>& x, const BlockSettings& settings, Random& random);
  std::string svg() const { return figure_.svg(); }

 private:
  void draw_attention(std::size_t H);
  void draw_network();
  void box(const Box& box, Tone tone, const std::string& first, const std::string& second);
  void down(double x, double from) { figure_.arrow({{x, from}, {x, from + gap}}, {Tone::ink}); }
  void from_stream(double y, const std::string& why);
  void to_stream(double y, const std::string& sum);
  std::string of(std::string_view name) const { return shapes_.find(name)->second; }
  /// A result's name with its shape, above its weight's.
  void result(const Box& at, Tone tone, const std::string& name, const std::string& weight) {
    box(at, tone, fmt::format("{} {}", name, of(name)), fmt::format("{} {}", weight, of(weight)));
  }

  static constexpr double gap = 18;
  Shapes shapes_;
  Figure figure_;
};

void Drawing::box(const Box& box, Tone tone, const std::string& first, const std::string& second) {
  figure_.box(box, tone, 0.14);
  figure_.frame(box, {tone});
  figure_.text({box.middle().x, box.y + 19}, first, {Tone::ink, Anchor::middle});
  figure_.text({box.middle().x, box.y + 36}, second, {Tone::quiet, Anchor::middle, 12});
}

void Drawing::from_stream(double y, const std::string& why) {
  figure_.text({rail + 12, y - 7}, why, {Tone::quiet, Anchor::start, 13});
  figure_.arrow({{rail, y}, {(left + right) / 2, y}, {(left + right) / 2, y + gap}}, {Tone::ink});
}

void Drawing::to_stream(double y, const std::string& sum) {
  figure_.arrow({{left, y}, {rail + 11, y}}, {Tone::ink});
  figure_.box({rail - 10, y - 10, 20, 20}, Tone::ink);
  figure_.label({rail - 10, y - 10, 20, 20}, "+", {.tone = Tone::paper, .size = 18});
  figure_.text({rail + 16, y - 8}, "adds", {.tone = Tone::quiet, .size = 12});
  figure_.text({rail + 8, y + 28}, sum);
}

void Drawing::draw_attention(std::size_t H) {
  const double at[] = {left, left + third + 10, left + 2 * (third + 10)};
  const auto middle = [&](int i) { return at[i] + third / 2; };
  from_stream(60, "attention (blue): tokens read each other");
  result({left, 78, right - left, high}, Tone::quiet, "attention_norm", "attention_norm.gain");
  for (int i = 0; i < 3; ++i) down(middle(i), 122);
  result({at[0], 140, third, high}, Tone::first, "q", "w_q");
  result({at[1], 140, third, high}, Tone::first, "k", "w_k");
  result({at[2], 140, third, high}, Tone::first, "v", "w_v");
  for (int i = 0; i < 2; ++i) down(middle(i), 184);
  box({at[0], 202, third, high}, Tone::first, of("q_rotated"), "rotated by RoPE");
  box({at[1], 202, third, high}, Tone::first, of("k_rotated"), "rotated by RoPE");
  for (int i = 0; i < 2; ++i) down(middle(i), 246);
  figure_.arrow({{middle(2), 184}, {middle(2), 264}}, {Tone::ink});
  box({left, 264, right - left, high}, Tone::first, "heads " + of("heads"),
      fmt::format("each of {} heads: softmax(q·kᵀ / √D + mask)·v", H));
  down((left + right) / 2, 308);
  result({left, 326, right - left, high}, Tone::first, "attention", "w_o");
  to_stream(348, "y " + of("x_plus_attention"));
}

void Drawing::draw_network() {
  const double at[] = {left, left + half + 10};
  from_stream(400, "the network (orange): each token alone");
  result({left, 418, right - left, high}, Tone::quiet, "feed_forward_norm",
         "feed_forward_norm.gain");
  for (const double x : at) down(x + half / 2, 462);
  result({at[0], 480, half, high}, Tone::second, "gate", "w_gate");
  result({at[1], 480, half, high}, Tone::second, "up", "w_up");
  for (const double x : at) down(x + half / 2, 524);
  box({left, 542, right - left, high}, Tone::second, "hidden " + of("hidden"), "silu(gate) · up");
  down((left + right) / 2, 586);
  result({left, 604, right - left, high}, Tone::second, "feed_forward", "w_down");
  to_stream(626, "x' " + of("x_plus_feed_forward"));
}

Drawing::Drawing(const Tensor<2>& x, const BlockSettings& settings, Random& random)
    : shapes_(shapes_in(x, settings, random)),
      figure_(right + 10, 690, "The block with its shapes",
              fmt::format(
                  "The stream runs down at the left. Attention reads a normalized copy of x {}: q "
                  "{}, k {} and v {}; RoPE rotates q and k; the heads' results {} are multiplied "
                  "by w_o, and the product {} is added to the stream, which gives y. The network "
                  "reads a normalized copy of y: gate and up {}; silu(gate) times up {}; its "
                  "product with w_down {} is added to the stream, which gives x'.",
                  shape_text(x.shape()), of("q"), of("k"), of("v"), of("heads"), of("attention"),
                  of("gate"), of("hidden"), of("feed_forward"))) {
  figure_.arrow({{rail, 36}, {rail, 680}}, {Tone::ink, 2.5});
  figure_.text({rail - 10, 24},
               fmt::format("x {}: the stream, a row for each token", shape_text(x.shape())));
  draw_attention(settings.H);
  draw_network();
}

}  // namespace

std::string figure_of_block(const Tensor<2>& x, const BlockSettings& settings, Random& random) {
  return Drawing(x, settings, random).svg();
}

}  // namespace t2t
