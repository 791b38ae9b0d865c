#include "09_language_model/shows/show_accounts.hpp"

#include <fmt/format.h>

#include "09_language_model/accounts/accounts.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", 100 * part / whole);
}

void show_parameters(const std::vector<Named>& models) {
  print_section("Where the parameters are");
  Table table({"model", ">parameters", ">embedding", ">attention", ">network", ">head", ">norms"});
  for (const auto& [name, config] : models) {
    const Parameters p = count_parameters(config);
    const double all = double(total(p));
    table.add({name, with_commas(total(p)), percent(double(p.embedding + p.positions), all),
               percent(double(p.attention), all), percent(double(p.feed_forward), all),
               config.tied ? "tied" : percent(double(p.head), all),
               fmt::format("{:.3f} %", 100 * double(p.norms) / all)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Network: the feed-forward networks. GPT-2's table of positions is counted with its "
      "embedding. In the smaller models, the vocabulary's tables have a larger share of the "
      "parameters.");
}

void show_rules(const std::vector<Named>& models) {
  print_section("Rules of thumb, compared with the count");
  Table table({"model", ">12·C²·L", ">of N", ">FLOPs, T = 128", ">FLOPs, T = T_max"});
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
      "N: all parameters. Last two columns: FLOPs per token of a forward pass with logits for all "
      "tokens, as a share of 2·N. A backward pass does two products for each one of the forward "
      "pass, so training takes three times the FLOPs, and the shares of 6·N are the same.");
}

void show_work(const std::vector<Named>& models) {
  print_section("Where the work is: in a prompt, and in one more token");
  Table table({"model", ">T", ">q, k, v, o", ">attention", ">network", ">weights", ">32 caches"});
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
      "The three shares are of the blocks' FLOPs in a prompt of T tokens; attention means scores "
      "and weighted sums of values. The last two columns are the bytes read, with 16-bit numbers, "
      "to give each of 32 sequences of T tokens one more token: the weights once for all, without "
      "tables of which only one row is read, and one cache for each. (Of these models only smollm2 "
      "has a T_max of 8192.)");
}

void show_memory(const std::vector<Named>& models) {
  print_section("Memory, with 16-bit numbers, one sequence of T_max tokens");
  Table table(
      {"model", ">weights", ">cache", ">to train", ">activations", ">[H, T, T]", ">state", ">all"});
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
      "Inference needs weights and cache. Training needs 16 bytes per parameter: 2 for the weight, "
      "2 for its gradient, and 4 each for two running means and a 32-bit weight that the optimizer "
      "AdamW keeps (chapter 13). Training also keeps activations, the results that the backward "
      "pass reads, and attention's weights [H, T, T] unless it recomputes them (chapter 11). "
      "State: 16 bytes per parameter, divided by the memory of inference. All: the same with "
      "activations and [H, T, T] added.");
}

}  // namespace t2t
