#include "24_delta_rule/shows/show_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "01_embedding/embedding.hpp"
#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/layer/delta_layer.hpp"
#include "program/print.hpp"

namespace t2t {

void show_two_tokens() {
  const float half = std::log(0.5f);
  const DeltaTokens tokens{
      {{1, 0}, {0, 1}}, {{1, 0}, {0.6f, 0.8f}}, {{2}, {1}}, {half, half}, {1, 0.5f}};
  print_section("By hand: two tokens, a state that halves, values 2 and 1");
  Table table({"rule", "form", ">o of token 0", ">o of token 1", ">state at (1, 0)", ">at (0, 1)"});
  for (const StateRule rule : {StateRule::add, StateRule::correct})
    for (const bool chunked : {false, true}) {
      Tensor<2> state = xt::zeros<float>({2, 1});
      const Tensor<2> o =
          chunked ? delta_chunks(tokens, rule, 2, state) : delta_recurrence(tokens, rule, state);
      table.add({rule == StateRule::add ? "gated linear" : "gated delta",
                 chunked ? "in a chunk" : "step by step", fmt::format("{:.2f}", o(0, 0)),
                 fmt::format("{:.2f}", o(1, 0)), fmt::format("{:.2f}", state(0, 0)),
                 fmt::format("{:.2f}", state(1, 0))});
    }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Before token 1 writes, the halved state holds 0.6 at its key, 0.4 less than its value. The "
      "delta rule writes half of that, since β is ½; linear attention writes all of the value.");
}

void show_two_calls(const Program& program, std::size_t most_tokens) {
  const DeltaLayerSettings settings{.C = 64, .H = 4, .D = 16, .Dv = 16};
  const std::vector<int> ids = byte_ids(program.text(most_tokens));
  const std::size_t T = ids.size(), first = (T + 1) / 2;
  Random random(program.seed());
  const Tensor<2> x = embed(ids, random.normal<2>({256, settings.C}));  // [T, C]
  const DeltaLayerWeights weights = draw_delta_weights(settings, random);

  DeltaLayerState once = empty_delta_state(settings), twice = empty_delta_state(settings);
  const Tensor<2> whole = delta_layer(x, weights, settings, once);
  float largest = 0, difference = 0;
  for (std::size_t t = 0; t < T; t += t == 0 ? first : 1) {
    const std::size_t count = t == 0 ? first : 1;
    const Tensor<2> part =
        delta_layer(copy_of(ConstMatrix(x).rows_from(t, count)), weights, settings, twice);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const float want = whole.data()[t * settings.C + i];
      largest = std::max(largest, std::abs(want));
      difference = std::max(difference, std::abs(want - part.data()[i]));
    }
  }
  print_section("A text in many calls");
  print_shapes({{"x", {T, settings.C}, "each row is a token"},
                {"qkv", {T, settings.channels()}, "after the convolution and SiLU"},
                {"memory", {settings.H, settings.D, settings.Dv}, "the state, of any length"},
                {"kept", {settings.W - 1, settings.channels()}, "rows for the convolution"},
                {"y", {T, settings.C}, "the layer's output"}});
  fmt::print("\n");
  print_paragraph(fmt::format(
      "{} tokens in chunks, and {} one by one, give what the whole text gives: {}. The state holds "
      "{} elements before and after.",
      first, T - first,
      difference < 1e-4f * largest ? "every element within a ten-thousandth of the largest"
                                   : "no, they differ",
      with_commas(once.memory.size() + once.kept.size())));
  program.save("x", x);
  program.save("y", whole);
  program.save("memory", once.memory);
}

}  // namespace t2t
