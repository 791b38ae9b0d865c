#include "15_serving/shows/show_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "15_serving/shows/arrivals.hpp"
#include "15_serving/shows/toy_runner.hpp"
#include "program/print.hpp"

namespace t2t {

/// The virtual clock: what a step takes, in milliseconds. Weights are read once, and each token is
/// multiplied with them.
static double milliseconds(std::size_t tokens) { return 8 + 1.5 * double(tokens); }

struct Waits {
  std::vector<double> between;  // two tokens of one answer, in milliseconds
  double first = 0;             // from the long prompt's arrival to its first token
  double at(double share) const { return between[std::size_t(share * double(between.size() - 1))]; }
};

/// Eight sequences that answer with 250 tokens each, and a long prompt that arrives in the tenth
/// step.
static Waits waits_with(std::size_t budget) {
  const EngineOptions options{.pages = 256, .page_size = 16, .sequences = 9, .budget = budget};
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 8; ++i) arrivals.push_back({0, {.prompt = {i, i}, .max_new_tokens = 250}});
  arrivals.push_back({10, {.prompt = std::vector<int>(1500, 9), .max_new_tokens = 1}});
  Waits waits;
  std::map<std::size_t, double> last;
  double now = 0, arrived = 0;
  run_arrivals(Engine(toy_runner(options, 50)), arrivals,
               [&](std::size_t step, const Engine& engine, const std::vector<Event>& events) {
                 if (step == 10) arrived = now;
                 std::size_t tokens = 0;
                 for (const StepPlan::Part& part : engine.plan().parts) tokens += part.tokens;
                 now += milliseconds(tokens);
                 for (const Event& event : events) {
                   if (event.id == 8) waits.first = now - arrived;
                   if (event.id < 8 && last.contains(event.id))
                     waits.between.push_back(now - last[event.id]);
                   last[event.id] = now;
                 }
               });
  std::ranges::sort(waits.between);
  return waits;
}

void show_chunks() {
  print_section("A prompt of 1,500 tokens while eight sequences answer");
  Table table({">budget", ">ITL p50", ">p99", ">max", ">the prompt's TTFT"});
  for (const std::size_t budget : {16, 64, 256, 2048}) {
    const Waits waits = waits_with(budget);
    const auto ms = [](double value) { return fmt::format("{:.0f} ms", value); };
    table.add({with_commas(budget), ms(waits.at(0.5)), ms(waits.at(0.99)), ms(waits.at(1)),
               ms(waits.first)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Each answer has 250 tokens. On a simulated clock, a step of n tokens takes 8 + 1.5·n "
      "milliseconds: 8 to read the weights, and 1.5 for each token's products with them. ITL, the "
      "inter-token latency, is the time between two tokens of an answer; p50 and p99 are its "
      "percentiles. TTFT is the time to the first token. With a budget of 2,048 tokens the prompt "
      "is read in one step, and all answers wait for it. With smaller budgets it is read in chunks "
      "between the answers' tokens, and its own first token comes later.");
}

}  // namespace t2t
