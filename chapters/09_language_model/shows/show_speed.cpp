#include "09_language_model/shows/show_speed.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <string>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/fast/forward.hpp"
#include "program/print.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// The kind of work that has just ended when the trace is given this part.
static const char* work_before(Part part) {
  switch (part) {
    case Part::q:
    case Part::k:
    case Part::v:
    case Part::attention:
      return "projections";
    case Part::heads:
      return "attention";
    case Part::gate:
    case Part::up:
    case Part::hidden:
    case Part::feed_forward:
      return "network";
    case Part::logits:
      return "head";
    default:
      return "norms, sums, RoPE";
  }
}

using Seconds = std::map<std::string, double>;

/// Seconds of each part for `tokens` tokens that follow `start` others.
static Seconds part_seconds(const Model& model, std::size_t start, std::size_t tokens) {
  using Clock = std::chrono::steady_clock;
  ModelState state(model.config(), start + tokens);
  Tensor<1> logits = empty(model.config().V);
  if (start > 0) forward(model, state, std::vector<int>(start, 1), row(logits));
  const std::vector<int> ids(tokens, 1);
  Seconds seconds;
  Clock::time_point last = Clock::now();
  forward(model, state, ids, row(logits), [&](Part part, std::size_t, ConstMatrix) {
    seconds[work_before(part)] += std::chrono::duration<double>(Clock::now() - last).count();
    last = Clock::now();
  });
  seconds.erase("head");  // it is no part of a block
  return seconds;
}

/// Seconds of each part of a prompt of T tokens. Of a long prompt only the middle eighth is timed,
/// whose tokens attend to as many others as all tokens do on average.
static Seconds prompt_seconds(const Model& model, std::size_t T) {
  const std::size_t shares = T >= 4096 ? 8 : 1, tokens = T / shares;
  Seconds seconds = part_seconds(model, (T - tokens) / 2, tokens);
  for (auto& [part, of] : seconds) of *= double(shares);
  return seconds;
}

void show_speed(Random& random) {
  print_section("Speed");
  Config config = resized(preset("smollm2-135m"), {.L = 1, .V = 8192});
  Model one(config, draw_model(config, random));

  // The shares of a prompt's time do not depend on the number of blocks, so one is timed.
  prompt_seconds(one, 128);  // to warm up
  Seconds brief = prompt_seconds(one, 128);
  Seconds lengthy = prompt_seconds(one, 8192);
  const auto add_up = [](const Seconds& seconds) {
    double sum = 0;
    for (const auto& [part, of] : seconds) sum += of;
    return sum;
  };
  Table table({"one block of smollm2-135m", ">T = 128", ">share", ">T = 8192", ">share"});
  for (const char* part : {"projections", "attention", "network", "norms, sums, RoPE"})
    table.add({part, duration_text(brief[part]),
               fmt::format("{:.0f} %", 100 * brief[part] / add_up(brief)),
               duration_text(lengthy[part]),
               fmt::format("{:.0f} %", 100 * lengthy[part] / add_up(lengthy))});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Of the 8192 tokens the middle 1024 were timed, which attend to as many others as all tokens "
      "do on average; the table shows 8 times that.");
  fmt::print("\n");

  // Thirty blocks: copies of the first, each in memory of its own.
  config.L = preset("smollm2-135m").L;
  ModelWeights weights = std::move(one).release();
  weights.blocks.resize(config.L, weights.blocks[0]);
  const Model model(config, std::move(weights));
  const std::size_t S = 128;
  ModelState state(config, S + 1);
  Tensor<1> logits = empty(config.V);
  const std::vector<int> prompt(S, 1), next = {2};
  const double prefill = median_seconds([&] {
    reset(state);
    forward(model, state, prompt, row(logits));
  });
  const double decode = median_seconds([&] {
    truncate(state, S);
    forward(model, state, next, row(logits));
  });
  const double read =
      double(bytes(model.weights())) + inference_memory(config, S, sizeof(float)).cache;
  print_paragraph(
      fmt::format("30 such blocks, V = 8192: {:.0f} tokens/s of a prompt of {}, then "
                  "{:.1f} tokens/s.",
                  double(S) / prefill, S, 1 / decode));
  print_roofline_flops("prompt, 128 tokens", prefill, total(count_flops(config, S, S, 1)));
  print_roofline_bytes("one more token", decode, read, read_bandwidth(), "reading memory");
}

}  // namespace t2t
