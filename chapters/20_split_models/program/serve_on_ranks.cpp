#include "20_split_models/program/serve_on_ranks.hpp"

#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <span>
#include <stdexcept>
#include <utility>

#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/serving/ranked_runner.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "program/stop_asked.hpp"

namespace t2t {

void expect_serve_task(const ServeFlags& flags, std::size_t ranks) {
  checked_options(flags);
  if (flags.swap > 0)
    throw std::invalid_argument(fmt::format("--swap: wanted 0 with --ranks, got {}", flags.swap));
  config_of(read_config(open_model(flags.model)), {0, ranks});
}

/// What fails in a step ends all ranks: chapter 16's server would go on without the others.
static ModelRunner all_or_none(const Communicator& world, ModelRunner runner) {
  runner.run = [&world, run = runner.run](std::span<const Chunk> chunks, Matrix logits) {
    try {
      run(chunks, logits);
    } catch (const std::exception& error) {
      end_all_ranks("20_split_models", world, error);
    }
  };
  return runner;
}

int serve_on_ranks(const Communicator& world, const ServeFlags& flags) {
  const StopAsked ends_rank_0{SIGUSR1};  // which then ends the others: see run_ranks
  const ServeOptions options = checked_options(flags);
  GgufFile file = open_model(flags.model);
  ReadShard shard = read_shard(file, read_config(file), {world.rank, world.size},
                               batch_invariant_matrices(flags.floats));
  Model own(std::move(shard.config), std::move(shard.weights));
  if (world.rank != 0) {
    follow(world, runner_of_rank(world, own, options.engine));
    return 0;
  }
  Bpe bpe = read_tokenizer(file);
  const Session session(std::move(file), std::move(bpe), std::move(own));
  LeadingRank leader(world, runner_of_rank(world, session.model, options.engine));
  fmt::print("The model is divided among {}.\n", ranks_text(world.size));
  return serve(flags, options, session, all_or_none(world, leader.runner()));
}

}  // namespace t2t
