#include "20_split_models/shows/show_token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "program/print.hpp"

namespace t2t {

static const std::vector<int> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
static constexpr int next_id = 53;

Config shown_config() {
  return {.block = llama_style(72, 9, 3, 192), .L = 4, .V = 258, .T_max = 64, .tied = true};
}

/// The last token's logits, and what this rank sent for that token alone.
struct ShownPass {
  Tensor<1> logits;
  Sent sent;
};
static ShownPass run(const Model& model, StateOptions options) {
  ModelState state(model.config(), prompt.size() + 1, std::move(options));
  ShownPass shown = {empty(model.config().V), {}};
  forward(model, state, prompt, row(shown.logits));
  const Sent before = sent();
  forward(model, state, {&next_id, 1}, row(shown.logits));
  shown.sent = sent() - before;
  return shown;
}

static void print_costs(const Config& whole, const PassCost& cost, const Sent& counted) {
  Table table({"where", "collective", ">times", ">floats each", ">messages", ">bytes"});
  const auto add = [&](const char* where, const char* collective, std::size_t times,
                       std::size_t floats, const Sent& of) {
    table.add({where, collective, fmt::format("{}", times), with_commas(floats),
               with_commas(of.messages), with_commas(of.bytes)});
  };
  const std::size_t C = whole.block.C;
  add("embedding", "all-reduce", 1, C, cost.embedding);
  add("after w_o", "all-reduce", whole.L, C, cost.attention);
  add("after w_down", "all-reduce", whole.L, C, cost.feed_forward);
  add("logits", "all-gather", 1, whole.V, cost.logits);
  const Sent formula = cost.together();
  table.add({"together", "", "", "", with_commas(formula.messages), with_commas(formula.bytes)});
  table.add({"counted", "", "", "", with_commas(counted.messages), with_commas(counted.bytes)});
  table.print();
}

static float largest(const Tensor<1>& x) {
  float most = 0;
  for (const float number : x) most = std::max(most, std::abs(number));
  return most;
}

Tensor<2> show_token(const Communicator& world, std::uint64_t seed) {
  const Config whole = shown_config();
  const Shard shard = {world.rank, world.size};
  Random random(seed);
  const Model all(whole, draw_model(whole, random));
  const Model own(config_of(whole, shard), shard_of(all.weights(), whole, shard));
  const ShownPass divided = run(own, parallel_options(world));
  const PassCost cost = pass_cost(whole, 1, 1, world.size, world.rank);
  expect_on_all(world, divided.sent == cost.together(),
                "a token: the messages counted are not the formula's");
  const ShownPass alone = run(all, {});
  Tensor<2> both = empty(2, whole.V);
  std::ranges::copy(alone.logits, row(both, 0).begin());
  std::ranges::copy(divided.logits, row(both, 1).begin());
  if (world.rank != 0) return both;

  print_section(fmt::format("What one token costs on {}", ranks_text(world.size)));
  print_paragraph("What rank 0 sends. Ranks with shorter chunks send a little more or less.");
  fmt::print("\n");
  print_costs(whole, cost, divided.sent);
  print_section("The logits beside one rank's");
  print_paragraph(fmt::format(
      "The largest difference of {} logits is {:.2g}, and the largest logit {:.2g}. Every rank has "
      "the same bits.",
      whole.V, largest(divided.logits - alone.logits), largest(alone.logits)));
  return both;
}

}  // namespace t2t
