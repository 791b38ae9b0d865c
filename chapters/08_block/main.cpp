// Shows what flows through a block, where its parameters and its work are, and what the residual
// connections and the norms do in a stack of 64 layers.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "01_embedding/embedding.hpp"
#include "07_swiglu/feed_forward.hpp"
#include "08_block/block.hpp"
#include "08_block/costs/block_costs.hpp"
#include "08_block/fast/cached_attention.hpp"
#include "08_block/shows/figure.hpp"
#include "08_block/shows/part_seconds.hpp"
#include "08_block/shows/show_depth.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "rows.hpp"
#include "shapes.hpp"
#include "timing/measure.hpp"

using namespace t2t;

namespace {

/// Real text as the first block of a model reads it, but scaled from 0.02 to size 1, as training
/// would have scaled it.
Tensor<2> stream(const Program& program, std::size_t T, std::size_t C, Random& random) {
  return embed(byte_ids(program.text(T)), embedding_table(256, C, random)) / 0.02f;  // [T, C]
}

void show_flow(const Program& program, const Tensor<2>& x, const BlockSettings& settings,
               Random& random) {
  static const std::map<Part, const char*> what = {
      {Part::attention_norm, "x, each token scaled to rms 1"},
      {Part::q, "queries, H heads side by side"},
      {Part::k, "keys, G heads"},
      {Part::v, "values, G heads"},
      {Part::q_rotated, "queries after RoPE"},
      {Part::k_rotated, "keys after RoPE; cached together with v"},
      {Part::heads, "each head's weighted mean of values"},
      {Part::attention, "heads times w_o: what is added to x"},
      {Part::x_plus_attention, "the first sum"},
      {Part::feed_forward_norm, "the sum, each token scaled to rms 1"},
      {Part::gate, "decides how much of up passes"},
      {Part::up, "what may pass"},
      {Part::hidden, "silu(gate) · up"},
      {Part::feed_forward, "hidden times w_down: what is added"},
      {Part::x_plus_feed_forward, "the second sum, the next block's x"}};

  print_section("What flows through");
  const std::size_t T = x.shape(0);
  const BlockWeights weights = draw_block(settings, random);
  const Block block(settings, weights);
  CachedAttention attention(settings, T, T);
  BlockScratch scratch(settings, T);
  std::vector<ShapeRow> rows = {{"x", {T, x.shape(1)}, "the text, one token per row"}};
  Tensor<2> y = x;
  block_rows(y, Run{0, 0, T}, block, {.attention = std::ref(attention)}, scratch,
             [&](Part part, std::size_t, ConstMatrix value) {
               const std::string name(part_name(part));
               rows.push_back({name, {value.rows, value.cols}, what.at(part)});
               program.save(name, copy_of(value));
             });
  print_shapes(rows);
  program.save("x", x);
  for_each_tensor(weights, settings, [&](const TensorInfo& info, const auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), const Weight&>)
      if (tensor.size() > 0) program.save(std::string(info.name), tensor.floats());
  });
}

void show_costs(const BlockSettings& settings, std::size_t T) {
  print_section("Parameters and work, part by part");
  const BlockCosts costs = block_costs(settings, T, T);
  const PartCost all = total(costs);

  Table table({"part", ">parameters", ">share", ">MFLOP", ">share", ""});
  const auto add = [&](const char* name, const PartCost& part) {
    table.add({name, with_commas(part.parameters),
               fmt::format("{:.1f} %", 100.0 * double(part.parameters) / double(all.parameters)),
               part.flops > 0 ? fmt::format("{:.2f}", part.flops / 1e6) : "–",
               part.flops > 0 ? fmt::format("{:.1f} %", 100 * part.flops / all.flops) : "–",
               bar(part.flops / all.flops, 20)});
  };
  add("norm 1", costs.attention_norm);
  add("q, k, v", costs.projections);
  add("scores, means", costs.attention);
  add("o", costs.output);
  add("norm 2", costs.feed_forward_norm);
  add("feed-forward", costs.feed_forward);
  table.add(
      {"block", with_commas(all.parameters), "", fmt::format("{:.2f}", all.flops / 1e6), "", ""});
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "These are the costs of {} tokens in one call. Only matrix products are counted, so the "
      "norms' work is left out. Scores and means have no parameters, and only their work grows "
      "with the square of the number of tokens.",
      T));
}

void show_models() {
  print_section("One block of some models");
  Table table({"model", ">C", ">H", ">G", ">F", ">attention", ">feed-forward", ">block", ">L"});
  const auto add = [&](const char* name, const BlockSettings& s, std::size_t L) {
    const BlockCosts costs = block_costs(s, 1, 1);
    const std::size_t attention = costs.projections.parameters + costs.output.parameters;
    table.add({name, std::to_string(s.C), std::to_string(s.H), std::to_string(s.G),
               std::to_string(s.F), with_commas(attention),
               with_commas(costs.feed_forward.parameters), with_commas(total(costs).parameters),
               std::to_string(L)});
  };
  add("foundry-small (this book's)", llama_style(256, 8, 4, gated_width(256, 1)), 4);
  add("SmolLM2-135M", llama_style(576, 9, 3, 1536), 30);
  add("GPT-2", gpt2_style(768, 12), 12);
  add("LLaMA-2-7B", llama_style(4096, 32, 32, gated_width(4096)), 32);
  table.print();
  fmt::print("\n");
  print_paragraph(
      "C: width; H: query heads; G: key and value heads; F: feed-forward width; L: layers. The "
      "other "
      "columns count parameters.");
}

/// x through one block, `chunk` tokens per call. [T, C]
Tensor<2> in_chunks(const Tensor<2>& x, const BlockSettings& settings, const BlockWeights& weights,
                    std::size_t chunk) {
  const std::size_t T = x.shape(0);
  const Block block(settings, weights);           // the weights are checked here, once
  CachedAttention attention(settings, T, chunk);  // a cache for T positions
  const BlockFunctions functions = {.attention = std::ref(attention)};
  BlockScratch scratch(settings, chunk);
  Tensor<2> y = x;
  for (std::size_t t = 0; t < T; t += chunk) {
    const Run run{.sequence = 0, .position = t, .rows = std::min(chunk, T - t)};
    block_rows(Matrix(y).rows_from(t, run.rows), run, block, functions, scratch);
  }
  return y;
}

void show_ways(const Tensor<2>& x, const BlockSettings& settings, Random& random) {
  print_section("All at once, in chunks, a token at a time");
  const std::size_t T = x.shape(0);
  const BlockWeights weights = draw_block(settings, random);
  const Tensor<2> want = block(x, weights, settings, block_rope_table(settings, T));

  Table table({"tokens per call", ">calls", ">largest difference from the reference"});
  for (std::size_t chunk : {T, std::min<std::size_t>(T, 5), std::size_t(1)}) {
    const Tensor<2> apart = xt::abs(in_chunks(x, settings, weights, chunk) - want);
    const float furthest = *std::ranges::max_element(apart);
    table.add({std::to_string(chunk), std::to_string((T + chunk - 1) / chunk),
               furthest < 1e-4f ? "< 0.0001" : fmt::format("{:.4f}", furthest)});
  }
  table.print();
}

void show_speed(const BlockSettings& settings, std::size_t T, Random& random) {
  print_section("Speed");
  ManyBlocks blocks(settings, T, random);
  const PartSeconds prefill = blocks.part_seconds(0, T), decode = blocks.part_seconds(T, 1);
  Table table({"part", fmt::format(">{} tokens", T), ">share", ">one more token", ">share"});
  for (const std::string& part : blocks.parts)
    table.add({part, duration_text(prefill.of.at(part)),
               fmt::format("{:.0f} %", 100 * prefill.of.at(part) / prefill.all),
               duration_text(decode.of.at(part)),
               fmt::format("{:.0f} %", 100 * decode.of.at(part) / decode.all)});
  table.add({"block", duration_text(prefill.all), "", duration_text(decode.all), ""});
  table.print();
  fmt::print("\n");

  const double flops = total(block_costs(settings, T, T)).flops;
  const double bytes = double(sizeof(float) * blocks.parameters());
  print_roofline_flops(fmt::format("block, {} tokens", T), prefill.all, flops);
  print_roofline_bytes("block, one token", decode.all, bytes, read_bandwidth(), "reading memory");
}

/// For three blocks or as many as 160 MB hold, the rows of T tokens, the reference's scores of up
/// to 256 tokens, and L small blocks.
double bytes_needed(const BlockSettings& s, double T, double L) {
  const auto parameters = [](const BlockSettings& s) {
    return double(total(block_costs(s, 1, 1)).parameters);
  };
  const double heads = double(s.H * s.D), groups = double(s.G * s.D);
  const double rows = 6 * double(s.C) + 2 * heads + 4 * groups + 2 * double(s.F) + 256 +
                      64 * double(thread_count());
  const double t = std::min(T, 256.0), scores = 4 * double(s.H) * t * t;
  return 160e6 + sizeof(float) * (3 * parameters(s) + T * rows + scores +
                                  L * parameters(stack_settings(64, false)));
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t T = 64, C = 256, H = 8, G = 4, F = gated_width(256, 1), L = 64;
  float residual_scale = 1;
  bool relu = false;
  std::string svg;
  Program program("08_block",
                  "The transformer block: what flows through, what it costs, and what the residual "
                  "connections and norms do in a stack of 64 layers.");
  program.takes_text();
  program.size("tokens", T, "tokens of the text, T");
  program.size("width", C, "width of the stream, C");
  program.size("heads", H, "query heads, H; must divide C");
  program.size("groups", G, "key and value heads, G; must divide H");
  program.size("ffn", F, "width of the feed-forward network, F");
  program.size("layers", L, "layers of the stack (C = 64, H = 4, G = 2), L");
  program.number("residual-scale", residual_scale,
                 "factor on the initial values of w_o and w_down in the stack");
  program.yes("relu", relu, "feed-forward networks with ReLU in the stack, instead of SwiGLU");
  program.output("svg", svg, "write the chapter's figure to this file and stop");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    Random random(program.seed());
    const BlockSettings settings = llama_style(C, H, G, F);
    expect_settings(settings);
    expect(residual_scale >= 0 && residual_scale <= 1000, "--residual-scale",
           "a number from 0 to 1000", residual_scale);
    expect_memory(bytes_needed(settings, double(program.text(T).size()), double(L)),
                  "--tokens, --width, --heads, --ffn and --layers");
    const Tensor<2> x = stream(program, T, C, random);  // [T, C]
    if (!svg.empty()) return write_file(svg, figure_of_block(x, settings, random));
    show_flow(program, x, settings, random);
    show_costs(settings, x.shape(0));
    show_models();
    show_ways(stream(program, std::min<std::size_t>(T, 256), C, random), settings, random);
    show_depth(stream(program, std::min<std::size_t>(T, 16), 64, random), stack_settings(64, relu),
               L, residual_scale, random);
    show_speed(settings, x.shape(0), random);
    fmt::print("\n");
    print_paragraph(
        "The page: docs/08_block.md. Next: ./learn run 09, a whole language model made of blocks.");
  });
}
