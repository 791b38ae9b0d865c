// Tables of what models hold, compute and take, for every preset: counted, so none is ever made.
// For main.cpp.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "09_language_model/accounts.hpp"
#include "memory.hpp"
#include "print.hpp"

namespace t2t {

using Named = std::pair<std::string, Config>;

inline std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", 100 * part / whole);
}

inline void show_parameters(const std::vector<Named>& models) {
  print_section("Where the parameters are");
  Table table({"model", ">parameters", ">embedding", ">attention", ">feed-forward", ">head"});
  for (const auto& [name, config] : models) {
    const Parameters p = count_parameters(config);
    const double all = double(total(p));
    table.add({name, with_commas(total(p)), percent(double(p.embedding + p.positions), all),
               percent(double(p.attention), all), percent(double(p.feed_forward), all),
               config.tied ? "tied" : percent(double(p.head), all)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The smaller the model, the more of it is vocabulary. GPT-2's positions stand with its "
      "embedding. The rest, under 0.1 %, are norms.");
}

inline void show_rules(const std::vector<Named>& models) {
  print_section("Rules of thumb, held against the count");
  Table table({"model", ">12·C²·L", ">of N", ">T = 128: of 2·N", ">T = T_max: of 2·N"});
  for (const auto& [name, config] : models) {
    const std::size_t C = config.block.C, rule = 12 * C * C * config.L;
    const double N = double(total(count_parameters(config)));
    const auto of_rule = [N, &config = config](std::size_t T) {
      return percent(total(count_flops(config, T, T, T)) / double(T), 2 * N);
    };
    table.add(
        {name, with_commas(rule), percent(double(rule), N), of_rule(128), of_rule(config.T_max)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "N: all parameters. The last two: FLOPs a token of a forward pass with logits for each, over "
      "2·N. A backward pass does each product twice more, once for the input and once for the "
      "weights, so training is three times as much and misses 6·N by the same.");
}

inline void show_work(const std::vector<Named>& models) {
  print_section("Where the work is: a prompt, and a token more");
  Table table(
      {"model", ">T", ">q, k, v, o", ">attention", ">feed-forward", ">weights", ">32 caches"});
  for (const auto& [name, config] : models)
    for (const std::size_t T : {std::size_t(128), std::size_t(8192)}) {
      const Flops f = count_flops(config, T, T, 0);
      const InferenceMemory memory = inference_memory(config, T, 2);
      const Parameters p = count_parameters(config);
      const double looked_up = 2 * double(p.positions + (config.tied ? 0 : p.embedding));
      table.add({name, std::to_string(T), percent(f.projections, total(f)),
                 percent(f.attention, total(f)), percent(f.feed_forward, total(f)),
                 bytes_text(memory.weights - looked_up), bytes_text(32 * memory.cache)});
    }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Shares: of the blocks' FLOPs in a prompt of T tokens; attention is scores and values alone. "
      "Then, in 16-bit numbers, what is read to give one token more to each of 32 texts that are T "
      "long: the weights once for all of them, and a cache for each. (8192 is beyond what all but "
      "smollm2 were trained for: it is only counted.)");
}

inline void show_memory(const std::vector<Named>& models) {
  print_section("Memory, with 16-bit numbers, one text of T_max tokens");
  Table table(
      {"model", ">weights", ">cache", ">to train", ">activations", ">[H, T, T]", ">times", ">all"});
  for (const auto& [name, config] : models) {
    const InferenceMemory run = inference_memory(config, config.T_max, 2);
    const TrainingMemory train = training_memory(config, 1, config.T_max, 2);
    const double state = train.weights + train.gradients + train.optimizer;
    const double inference = run.weights + run.cache + run.scratch;
    const double all = state + train.activations + train.attention_weights;
    table.add({name, bytes_text(run.weights), bytes_text(run.cache), bytes_text(state),
               bytes_text(train.activations), bytes_text(train.attention_weights),
               fmt::format("{:.1f}", state / inference), fmt::format("{:.1f}", all / inference)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Weights and cache are what inference needs. To train: weights and gradients of 2 bytes, "
      "AdamW's two means and its own weights of 4: 16 bytes a parameter. Activations wait for the "
      "backward pass; the attention's weights [H, T, T] need not (chapter 11). Times: memory "
      "to train over memory for inference, without these two; all: with them.");
}

}  // namespace t2t
