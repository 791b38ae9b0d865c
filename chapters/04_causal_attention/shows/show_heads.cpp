#include "04_causal_attention/shows/show_heads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "04_causal_attention/fast/attention_rows.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/proof/two_values.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "program/program.hpp"

namespace t2t {

void show_heads(const Program& program, const Tensor<2>& x, std::size_t H,
                const std::vector<std::string>& labels) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  Random random(program.seed());
  const AttentionWeights weights = draw_attention_weights(C, random);
  const Tensor<2> out = multi_head_attention(x, weights, H, Mask::causal);  // [T, C]
  // [caller]
  const Tensor<2> q = matmul_bt(x, weights.w_q);  // [T, C]
  const Tensor<2> k = matmul_bt(x, weights.w_k);  // [T, C]
  const Tensor<2> v = matmul_bt(x, weights.w_v);  // [T, C]

  Tensor<2> heads = empty(T, C);  // [T, C], the heads' results side by side
  AttentionScratch scratch(T, T);
  attention_rows(q, side_by_side(k, v, H), Mask::causal, heads, scratch);

  const Tensor<2> by_rows = matmul_bt(heads, weights.w_o);  // [T, C]
  // [/caller]
  program.save("w_q", weights.w_q);
  program.save("w_k", weights.w_k);
  program.save("w_v", weights.w_v);
  program.save("w_o", weights.w_o);
  program.save("out", out);
  program.save("out_by_rows", by_rows);

  print_section("Many heads: what the last token attends to, head by head");
  const Tensor<3> q_heads = split_heads(q, H), k_heads = split_heads(k, H);  // [H, T, D]
  Tensor<2> last = empty(H, T);                                              // [H, S]
  std::vector<std::string> names;
  for (std::size_t h = 0; h < H; ++h) {
    const Tensor<2> head =
        attention_weights(xt::view(q_heads, h), xt::view(k_heads, h), Mask::causal);
    xt::view(last, h) = xt::view(head, T - 1);
    names.push_back("head " + std::to_string(h));
  }
  print_heat_map(last, {names, labels});
  fmt::print("\n");
  print_shapes({{"x", {T, C}, "one row for each token"},
                {"q, k, v", {T, C}, "x·Wᵀ, one product for each"},
                {"split", {H, T, C / H}, "H heads of D = C / H channels"},
                {"scores", {H, T, T}, "q·kᵀ / √D + mask"},
                {"heads", {H, T, C / H}, "softmax(scores)·v"},
                {"merged", {T, C}, "the heads' channels side by side again"},
                {"out", {T, C}, "merged·w_oᵀ, which mixes the heads"}});
}

void show_split() {
  print_section("Split, not reshape: two tokens a and b, 4 channels, 2 heads");
  const Tensor<2> x = {{0, 1, 2, 3}, {10, 11, 12, 13}};
  const Tensor<3> split = split_heads(x, 2);
  Tensor<3> reshaped = empty(2, 2, 2);
  std::copy(x.begin(), x.end(), reshaped.begin());

  const auto name = [](float v) { return fmt::format("{}{}", v < 10 ? 'a' : 'b', int(v) % 10); };
  fmt::print("                   x               split_heads    reshape to [H, T, D]\n");
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 2; ++t) {
      std::string line = fmt::format("  head {}, token {}  ", h, t);
      for (std::size_t c = 0; c < 4; ++c) line += h == 0 ? name(x(t, c)) + " " : "   ";
      for (const Tensor<3>& heads : {split, reshaped})
        line += fmt::format("    {} {}       ", name(heads(h, t, 0)), name(heads(h, t, 1)));
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  fmt::print("\n");
  print_paragraph(
      "A reshape keeps the order of the elements in memory: head 0 would get all of token a, and "
      "its two rows would be the halves of that token. No error is raised, and the mask hides the "
      "wrong elements.");
}

void show_two_values() {
  print_section("Why several heads: fetch two numbers, a and b");
  const AttentionWeights first = weights_of_one_head(40, 0), both = weights_of_one_head(0, 0);
  const AttentionWeights near = weights_of_one_head_near(0.001f), two = weights_of_two_heads();
  Table table({"wanted", "one head: first token", "one head: both equally", "one head: values ±250",
               "two heads"});
  const auto pair = [](const Tensor<1>& answer) {
    return fmt::format("{:.3f} {:.3f}", answer(0), answer(1));
  };
  for (const float a : {0.f, 1.f})
    for (const float b : {0.f, 1.f})
      table.add({fmt::format("{} {}", a, b), pair(two_values(a, b, first, 1)),
                 pair(two_values(a, b, both, 1)), pair(two_values(a, b, near, 1)),
                 pair(two_values(a, b, two, 2))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "One token reads two others, each of which holds a number. One head returns one weighted "
      "mean of these numbers.");
}

}  // namespace t2t
