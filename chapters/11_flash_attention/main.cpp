// Shows softmax computed key by key, which blocks of scores are computed, what memory they need,
// what the kernels for a GPU ask for, and a model that reads a long prompt with flash attention.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "06_gqa/fast/grouped_rows.hpp"
#include "10_pretrained/program/default_model.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "11_flash_attention/shows/figure.hpp"
#include "11_flash_attention/shows/show_ladder.hpp"
#include "11_flash_attention/shows/show_layouts.hpp"
#include "11_flash_attention/shows/show_model.hpp"
#include "11_flash_attention/shows/show_steps.hpp"
#include "files/files.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "timing/measure.hpp"

using namespace t2t;

/// Times both kernels on the heads of one layer of SmolLM2-135M.
static void show_layers(std::size_t seed) {
  const std::size_t H = 9, G = 3, D = 64;
  for (const std::size_t T : {512, 2048}) {
    Random random(seed);
    const Tensor<2> q = random.normal<2>({T, H * D}), k = random.normal<2>({T, G * D});
    const Tensor<2> v = random.normal<2>({T, G * D});
    const KeyValueHeads heads = side_by_side(k, v, G);
    Tensor<2> out = empty(T, H * D);
    FlashScratch blocks(H, G, D);
    GroupedScratch rows(T, T, H, D);
    const Pair seconds =
        median_seconds_in_turn([&] { grouped_attention_rows(q, heads, Mask::causal, out, rows); },
                               [&] { flash_attention_rows(q, heads, Mask::causal, out, blocks); });
    const double flops = 4 * double(H * D) * double(T) * (double(T) + 1) / 2;
    print_roofline_flops(fmt::format("whole rows, T={}", T), seconds.first, flops);
    print_roofline_flops(fmt::format("in blocks, T={}", T), seconds.second, flops);
  }
}

int main(int argc, char** argv) {
  std::size_t T = 512;
  std::string svg;
  std::vector<std::string> ladder;
  Program program(
      "11_flash_attention",
      "Flash attention: the result of attention, without storing whole rows of scores.");
  program.takes_text();
  program.size("tokens", T, "greatest length of the prompt that the model reads");
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.input_and_output(
      "svg-ladder", ladder,
      "draw the speeds of a record of ./learn gpu, docs/gpu/NAME.json, and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    if (!svg.empty()) return write_file(svg, figure_of_blocks());
    if (ladder.size() == 1)
      throw std::invalid_argument("--svg-ladder: wanted two files, a record and a figure, got one");
    if (!ladder.empty()) return write_file(ladder[1], figure_of_ladder(ladder[0]));
    const std::string text = CharacterStream().push(program.text(8 * T));  // whole characters
    show_four_keys();
    show_blocks();
    show_window();
    show_memory();
    show_error(program);
    show_ladder();
    show_fragment();
    show_swizzle();
    print_section("Speed");
    show_layers(program.seed());
    show_model(prepare(default_model(), text, T, program.seed()));
    fmt::print("\n");
    print_paragraph(
        "Next: the page, docs/11_flash_attention.md, and the one on the kernels for a GPU, "
        "docs/11_gpu_kernels.md.");
  });
}
