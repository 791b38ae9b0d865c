#include "20_split_models/program/continue_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "09_language_model/generate.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "19_ranks/collectives/values.hpp"
#include "19_ranks/link/link_flag.hpp"
#include "19_ranks/link/virtual_link.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/shows/show_shards.hpp"
#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "20_split_models/tensor_parallel/shard_weights.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "statistics.hpp"
#include "timing/measure.hpp"

namespace t2t {

using Clock = std::chrono::steady_clock;

static std::vector<int> prompt_ids(const Bpe& bpe, const std::string& text, std::size_t T_max) {
  std::vector<int> ids = bpe.encode(text);
  if (bpe.first()) ids.insert(ids.begin(), *bpe.first());
  if (ids.empty() || ids.size() > T_max)
    throw std::invalid_argument(
        fmt::format("--prompt: wanted 1 to T_max = {} tokens, got {}", T_max, ids.size()));
  return ids;
}

/// The same functions, with the time that a rank spends in them: in messages, and waiting for them.
static StateOptions timed(StateOptions options, double& seconds) {
  const auto add_time = [&seconds](const auto& call) {
    const auto start = Clock::now();
    call();
    seconds += seconds_since(start);
  };
  options.embedded = [=, call = options.embedded](Matrix x) { add_time([&] { call(x); }); };
  options.scored = [=, call = options.scored](Matrix x) { add_time([&] { call(x); }); };
  options.before_sum = [=, call = options.before_sum](const Block& block, Part part, ConstMatrix x,
                                                      Matrix added) {
    add_time([&] { call(block, part, x, added); });
  };
  return options;
}

/// What each token after the first took.
struct Steps {
  std::vector<double> seconds, in_messages;
  std::vector<double> on_clock, computing;  // with a virtual link
  Sent sent;                                // for the last token
};

/// Prints the prompt and what follows it.
static Steps speak(const Communicator& world, const Model& model, const Bpe& bpe,
                   const ContinueFlags& flags, std::uint64_t seed) {
  const std::vector<int> ids = prompt_ids(bpe, flags.prompt, model.config().T_max);
  double in_messages = 0;
  const std::size_t S = std::min(model.config().T_max, ids.size() + flags.tokens);
  ModelState state(model.config(), S, timed(parallel_options(world), in_messages));
  const Generation generation = {
      .most = flags.tokens, .stop_tokens = bpe.ends(), .sampling = flags.sampling};
  Random random(seed);
  StreamingDecoder decoder(bpe);
  Steps steps;
  Sent before;
  Clock::time_point start;
  double clock = 0, computed = 0;
  bool is_first = true;
  fmt::print("{}", without_controls(bpe.decode(ids)));
  generate(model, state, ids, generation, random, [&](int id) {
    fmt::print("{}", without_controls(decoder.push(id)));
    std::fflush(stdout);
    if (!std::exchange(is_first, false)) {
      steps.seconds.push_back(seconds_since(start)), steps.in_messages.push_back(in_messages);
      steps.on_clock.push_back(virtual_seconds() - clock);
      steps.computing.push_back(virtual_computing() - computed);
      steps.sent = sent() - before;
    }
    before = sent(), in_messages = 0, start = Clock::now();
    clock = virtual_seconds(), computed = virtual_computing();
    return true;
  });
  fmt::print("{}\n", without_controls(decoder.finish()));
  return steps;
}

static void print_steps(const Communicator& world, const Config& whole, const Steps& steps) {
  const Sent formula = pass_cost(whole, 1, 1, world.size, world.rank).together();
  if (steps.seconds.empty() || world.rank != 0) return;
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A token takes {}, of which {} are spent in messages and in waiting for them (medians of "
      "{}). "
      "For each, rank 0 sends {} bytes in {} messages; the formula says {} in {}.",
      duration_text(quantile(steps.seconds, 0.5)), duration_text(quantile(steps.in_messages, 0.5)),
      steps.seconds.size(), with_commas(steps.sent.bytes), steps.sent.messages,
      with_commas(formula.bytes), formula.messages));
}

/// What a token takes on the ranks' clocks, beside what the formulas say: all ranks must call it.
static void print_link(const Communicator& world, const Config& whole, const Link& link,
                       const Steps& steps) {
  if (steps.seconds.empty()) return;
  const double computing = largest_value(world, quantile(steps.computing, 0.5)),
               on_clock = quantile(steps.on_clock, 0.5);
  const double messages = pass_seconds(whole, link, world.size);
  if (world.rank != 0) return;
  fmt::print("\n");
  print_paragraph(fmt::format(
      "On {}, by the ranks' clocks, a token takes {}. Of this, the rank that computes longest "
      "computes for {}. By formula the messages take {}, together {} ({:+.1f} %).",
      link_text(link), duration_text(on_clock), duration_text(computing), duration_text(messages),
      duration_text(computing + messages), 100 * ((computing + messages) / on_clock - 1)));
}

void expect_text_task(const ContinueFlags& flags, std::size_t ranks) {
  if (!flags.link.empty()) link_of_flag(flags.link);
  const GgufFile file = open_model(flags.model);
  const Config whole = read_config(file);
  config_of(whole, {0, ranks});
  prompt_ids(read_tokenizer(file), flags.prompt, whole.T_max);
}

int continue_text(const Communicator& world, const ContinueFlags& flags, std::uint64_t seed) {
  const GgufFile file = open_model(flags.model);
  const Bpe bpe = read_tokenizer(file);
  const Config whole = read_config(file);
  if (bpe.size() != whole.V)
    throw std::runtime_error(fmt::format("{}: {} tokens in the tokenizer, {} in the model",
                                         file.name(), bpe.size(), whole.V));
  ReadShard shard = read_shard(file, whole, {world.rank, world.size});
  const std::vector<double> read = value_of_each(world, double(shard.bytes));
  std::uint64_t in_file = 0;
  for (const GgufTensor& tensor : file.tensors()) in_file += tensor.size;
  const Model model(std::move(shard.config), std::move(shard.weights));
  if (world.rank == 0) {
    print_section(fmt::format("{} on {}", flags.model.substr(flags.model.rfind('/') + 1),
                              ranks_text(world.size)));
    show_shards(whole, world.size, shard.unit);
    fmt::print("\n");
    std::string texts;
    for (const double bytes : read)
      texts += fmt::format("{}{}", texts.empty() ? "" : ", ", with_commas(std::size_t(bytes)));
    print_paragraph(fmt::format("Of the file's {} bytes of tensors, the ranks asked for {}.",
                                with_commas(in_file), texts));
    fmt::print("\n");
  }
  std::optional<Link> link;
  if (!flags.link.empty()) link = link_of_flag(flags.link);
  wait_for_all(world);
  set_virtual_link(link);
  const Steps steps = speak(world, model, bpe, flags, seed);
  set_virtual_link(std::nullopt);
  print_steps(world, whole, steps);
  if (link) print_link(world, whole, *link, steps);
  return 0;
}

}  // namespace t2t
