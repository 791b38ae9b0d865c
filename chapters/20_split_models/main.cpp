// Split models: one model that no rank has whole, and the messages that make its parts one model.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "09_language_model/program/sampling_flags.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/program/continue_text.hpp"
#include "20_split_models/program/plan_task.hpp"
#include "20_split_models/program/serve_on_ranks.hpp"
#include "20_split_models/shows/show_context.hpp"
#include "20_split_models/shows/show_experts.hpp"
#include "20_split_models/shows/show_latency.hpp"
#include "20_split_models/shows/show_prefill.hpp"
#include "20_split_models/shows/show_shards.hpp"
#include "20_split_models/shows/show_token.hpp"
#include "20_split_models/shows/show_training.hpp"
#include "20_split_models/tensor_parallel/shards.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

static int tour(const Program& program, const Communicator& world) {
  if (world.rank == 0) {
    print_section(
        fmt::format("A model with 9 query heads and 3 key heads on {}", ranks_text(world.size)));
    show_shards(shown_config(), world.size);
  }
  const Tensor<2> logits = show_token(world, program.seed());
  if (world.rank == 0) {
    show_uneven_heads();
    show_latency();
  }
  const bool enough = world.size <= most_training_ranks;
  const Tensor<2> losses =
      enough ? show_training(world, measured_text(), program.seed()) : empty(0, 2);
  if (!enough)
    print_paragraph(
        fmt::format("The training is left out: its model has {} key heads.", most_training_ranks));
  if (world.rank != 0) return 0;
  program.save("logits", logits), program.save("losses", losses);
  return 0;
}

static int context_tour(const Program& program, const Communicator& world, std::size_t prefill) {
  const Tensor<2> rows = show_context(world, program.seed()),
                  logits = show_prefill(world, prefill, program.seed());
  if (world.rank == 0) program.save("rows", rows), program.save("logits", logits);
  return 0;
}

static int experts_tour(const Program& program, const Communicator& world) {
  const Tensor<2> rows = show_experts(world, program.seed());
  const Tensor<2> losses = show_expert_training(world, measured_text(), program.seed());
  if (world.rank != 0) return 0;
  program.save("fullest", rows), program.save("losses", losses);
  return 0;
}

int main(int argc, char** argv) {
  std::size_t ranks = 2, prefill = 1024;
  std::string split = "tensor";
  ContinueFlags flags;
  PlanFlags planned;
  ServeFlags served;
  Program program("20_split_models",
                  "One model on many ranks, each of which has a part of every matrix. Without "
                  "--model and --prompt: a small model, and what a token costs.");
  program.size("ranks", ranks, "how many processes to start; they may be more than cores");
  program.word(
      "split", split,
      "what is divided: the matrices (tensor), a sequence's tokens (context), or a mixture's "
      "experts (experts)");
  program.size("prefill", prefill, "tokens of the prompt that --split context divides");
  add_flags(program, served);  // --model among them
  program.word("prompt", flags.prompt, "text to continue with the real model");
  program.size("tokens", flags.tokens, "most tokens to generate");
  program.word("link", flags.link,
               "LATENCY,BANDWIDTH in seconds and bytes per second: what a token of the real model "
               "would take on such a link, by clocks of the ranks; 30e-6,10e9 is Ethernet");
  add_sampling_flags(program, flags.sampling);
  add_plan_flags(program, planned);
  program.has_solutions(solutions);
  const auto check = [&] {
    if (split != "tensor" && split != "context" && split != "experts")
      throw std::invalid_argument(
          fmt::format("--split: wanted tensor, context or experts, got {}", split));
    constexpr std::size_t most_ranks = 64;
    if (ranks > most_ranks)
      throw std::invalid_argument(
          fmt::format("--ranks: wanted at most {}, got {}", most_ranks, ranks));
    constexpr std::size_t most_prefill = 1 << 20;
    if (prefill < 2 * ranks || prefill > most_prefill)
      throw std::invalid_argument(
          fmt::format("--prefill: wanted from {}, two tokens for each rank, to {}, got {}",
                      2 * ranks, most_prefill, prefill));
    expect_sampling(flags.sampling);
  };
  const auto on_ranks = [&](const std::function<int(const Communicator&)>& part) {
    if (!is_rank()) start_ranks(ranks, {argv, argv + argc});
    return run_on_ranks("20_split_models", [&](const Communicator& world) {
      silence_others(world);
      return part(world);
    });
  };
  const auto show = [&] {
    if (split == "context")
      return on_ranks(
          [&](const Communicator& world) { return context_tour(program, world, prefill); });
    if (split == "experts") {
      own_experts(shown_experts, ranks, 0);  // which refuses more ranks than experts
      return on_ranks([&](const Communicator& world) { return experts_tour(program, world); });
    }
    config_of(shown_config(), {0, ranks});  // which refuses more ranks than heads
    return on_ranks([&](const Communicator& world) { return tour(program, world); });
  };
  const auto serve = [&] {
    expect_serve_task(served, ranks);
    if (!is_rank()) return run_ranks(ranks, {argv, argv + argc});
    return on_ranks([&](const Communicator& world) { return serve_on_ranks(world, served); });
  };
  const auto go_on = [&] {
    flags.model = served.model;
    expect_text_task(flags, ranks);
    return on_ranks(
        [&](const Communicator& world) { return continue_text(world, flags, program.seed()); });
  };
  const auto of_text =
      joined({"ranks", "split", "model", "tokens", "link", "seed"}, sampling_flags());
  return program.run_tasks(argc, argv,
                           {{{"plan", plan_flags(), [&] { return show_plan(planned); }},
                             {"serve", joined({"ranks"}, serve_flags()), serve},
                             {"prompt", of_text, go_on},
                             {"", {"ranks", "split", "prefill", "seed", "save"}, show},
                             {"", of_text, go_on}},
                            {},
                            check});
}
