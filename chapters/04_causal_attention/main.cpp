// Shows what attention does: scores and weights of one head, four masks, why scores are divided by
// the root of D, several heads, biases, and the recurrent cells that attention replaced.
#include <fmt/core.h>

#include "01_embedding/embedding.hpp"
#include "04_causal_attention/fast/attention_rows.hpp"
#include "04_causal_attention/fast/softmax_rows.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/recurrence/recurrence.hpp"
#include "04_causal_attention/shows/figure.hpp"
#include "04_causal_attention/shows/show_biases.hpp"
#include "04_causal_attention/shows/show_heads.hpp"
#include "04_causal_attention/shows/show_kernels.hpp"
#include "04_causal_attention/shows/show_recurrence.hpp"
#include "04_causal_attention/shows/show_root.hpp"
#include "04_causal_attention/shows/show_weights.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

using namespace t2t;

static std::vector<std::string> letters(const std::vector<int>& ids) {
  std::vector<std::string> shown;
  for (const int id : ids) shown.push_back(id < 128 ? visible(std::string(1, char(id))) : "?");
  return shown;
}

static void show_speed(const Program& program) {
  print_section("Speed");
  constexpr std::size_t T = 512, H = 9, D = 64, C = H * D;
  Random random(program.seed());
  Tensor<2> rows = random.normal<2>({8192, 1024});
  print_roofline_bytes("softmax_rows [8192, 1024]", median_seconds([&] { softmax_rows(rows); }),
                       2.0 * double(rows.size() * sizeof(float)), update_bandwidth(),
                       "updating memory in place");

  const Tensor<2> q = random.normal<2>({T, C}), k = random.normal<2>({T, C});
  const Tensor<2> v = random.normal<2>({T, C});
  Tensor<2> out = empty(T, C);
  AttentionScratch scratch(T, T);
  const double flops = 4 * pairs_seen(T, T, Mask::causal) * C;  // two products per pair
  print_roofline_flops("attention_rows H=9 T=512 D=64", median_seconds([&] {
                         attention_rows(q, side_by_side(k, v, H), Mask::causal, out, scratch);
                       }),
                       flops);
  const RecurrentCell cell = draw_recurrent_cell(C, random);
  print_roofline_flops("recurrence T=512 C=576", median_seconds([&] { out = recurrence(q, cell); }),
                       4.0 * T * C * C);
}

/// The weights, rows of tokens, and scores as the formula holds them: for each head several times.
static double bytes_needed(double T, double C, double H) {
  return sizeof(float) * (4 * C * C + 256 * (T + C) + 16 * T * C + (5 * H + 4) * T * T);
}

int main(int argc, char** argv) {
  std::size_t T = 12, C = 16, H = 4;
  std::string svg;
  Program program("04_causal_attention",
                  "Each token attends to those before it: scores, masks, weights, several heads.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text that become tokens, T");
  program.size("width", C, "channels of a token's vector, C");
  program.size("heads", H, "heads, H: a number that divides C");
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    Random random(program.seed());
    if (!svg.empty()) return write_file(svg, figure_of_weights(program.text(256), random));
    expect(T <= 2048, "--tokens", "at most 2048, since scores are kept for all pairs of tokens", T);
    expect_memory(bytes_needed(double(T), double(C), double(H)), "--tokens, --width and --heads");
    const std::vector<int> ids = byte_ids(program.text(T));  // [T]
    const Tensor<2> table = random.normal<2>({256, C});      // [V, C]
    const Tensor<2> x = embed(ids, table);                   // [T, C]
    split_heads(x, H);                                       // refuses H before anything is shown
    program.save("ids", ids);
    program.save("x", x);

    show_one_head(program, x, letters(ids));
    show_masks();
    show_root(program);
    show_two_values();
    show_heads(program, x, H, letters(ids));
    show_split();
    show_kernels(program, x, H);
    show_biases(program);
    show_recurrence(program);
    show_lstm(program);
    show_speed(program);
    fmt::print("\n  Next: ./learn run 05 keeps k and v; the page: docs/04_causal_attention.md\n");
  });
}
