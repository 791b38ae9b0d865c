#include "15_serving/shows/show_pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "15_serving/shows/arrivals.hpp"
#include "15_serving/shows/toy_reader.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// "text 1 is admitted, text 2 ends"
static std::string what_happened(const Engine& engine, const std::vector<Event>& events) {
  std::vector<std::string> told;
  for (const std::size_t id : engine.plan().stopped)
    told.push_back(fmt::format("text {} is stopped", id));
  for (const std::size_t id : engine.plan().admitted)
    told.push_back(fmt::format("text {} is admitted", id));
  for (const Event& event : events)
    if (event.ending) told.push_back(fmt::format("text {} ends", event.id));
  return fmt::format("{}", fmt::join(told, ", "));
}

/// The tokens of each text of a step: "0: 1, 1: 7".
static std::string what_is_read(const StepPlan& plan) {
  std::string parts;
  for (const auto& [id, tokens] : plan.parts)
    parts += fmt::format("{}{}: {}", parts.empty() ? "" : ", ", id, tokens);
  return parts;
}

void show_pages() {
  print_section("Three texts in twelve pages of four tokens");
  const PageSizes sizes{.pages = 12, .page = 4, .texts = 3, .budget = 12};
  std::vector<Arrival> arrivals;
  const auto add = [&](std::size_t step, std::vector<int> own, std::size_t most) {
    Request request{.prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, .most = most};
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.sampling.temperature = 0;
    arrivals.push_back({step, request});
  };
  add(0, {11}, 11), add(2, {12, 13, 14}, 14), add(3, std::vector<int>(15, 15), 6);
  Table table({">step", "pages", ">free", "tokens read", "what happens"});
  run_arrivals(
      Engine(toy_reader(sizes, 50)), arrivals,
      [&](std::size_t step, const Engine& engine, const std::vector<Event>& events) {
        const std::string told = what_happened(engine, events);
        if (told.empty()) return;
        table.add({std::to_string(step), picture_of(engine), std::to_string(engine.pool().free()),
                   what_is_read(engine.plan()), told});
      });
  table.print();
  fmt::print("\n");
  print_paragraph(
      "A column of the pages is one page after the step: a digit is the text that has it, + means "
      "several texts, - a page that is cached for texts with the same beginning, and a dot a free "
      "page. A step reads at most 12 tokens. Steps in which no text is admitted, is stopped or "
      "ends are left out. When pages run out, cached pages are evicted first. Then the youngest "
      "text is stopped (preempted), to be readmitted later. Its full pages stay cached, as in step "
      "6, until others need them.");
}

/// Lengths of conversations: e to the power of a normal number, as lengths of texts often are.
static std::vector<std::size_t> random_lengths(std::size_t count, std::size_t most,
                                               Random& random) {
  const Tensor<1> drawn = random.normal<1>({count}, 0.9f);
  std::vector<std::size_t> lengths;
  for (const float x : drawn)
    lengths.push_back(std::clamp(std::size_t(300 * std::exp(x)), std::size_t(16), most));
  return lengths;
}

void show_waste(const Program& program) {
  print_section("Memory for a thousand texts of up to 2,048 tokens");
  Random random(program.seed());
  const std::size_t S = 2048;
  const std::vector<std::size_t> lengths = random_lengths(1000, S, random);
  double used = 0;
  for (const std::size_t length : lengths) used += double(length);
  Table table({"memory is divided into", ">places a text", ">unused", ">texts in 1 GiB"});
  const double floats_a_token = 2 * 30 * 3 * 64;  // SmolLM2-135M's keys and values
  const auto add = [&](const std::string& name, double places) {
    const double a_text = places / double(lengths.size());
    table.add({name, fmt::format("{:.0f}", a_text),
               fmt::format("{:.1f} %", 100 * (1 - used / places)),
               fmt::format("{:.0f}", double(1 << 30) / (a_text * floats_a_token * 4))});
  };
  add("one piece for each text", double(S * lengths.size()));
  for (const std::size_t page : {256, 64, 16, 4}) {
    double places = 0;
    for (const std::size_t length : lengths) places += double((length + page - 1) / page * page);
    add(fmt::format("pages of {}", page), places);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      fmt::format("The lengths are 300·e^x, where x is random with variance 0.81, but at least 16 "
                  "and at most 2,048; their mean is {:.0f}. A token's keys and values take {:.0f} "
                  "bytes, as in SmolLM2-135M.",
                  used / double(lengths.size()), floats_a_token * 4));
}

}  // namespace t2t
