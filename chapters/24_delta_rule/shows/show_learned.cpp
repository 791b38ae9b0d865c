#include "24_delta_rule/shows/show_learned.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "program/print.hpp"
#include "program/progress.hpp"

namespace t2t {

/// What both layers keep of one sequence.
static std::size_t kept_of(const RecallOptions& options) {
  std::size_t elements = 0;
  for (const Mixer mixer : mixers_of(options.kind))
    elements += kept_elements(mixer, recall_sizes(), options.task.T());
  return elements;
}

int show_learned(const RecallOptions& options) {
  const std::size_t kept = kept_of(options);
  const RecallResult result = learn_recall(options, [&](const RecallResult& so_far) {
    show_progress(
        fmt::format("  step {}: {:.2f} of the held-out values found", so_far.steps, so_far.share));
  });
  show_progress("");
  print_section(fmt::format("Recall after training: {}", options.kind));
  Table table({">pairs", ">written", ">tokens", ">kept", ">seed", ">steps", ">found"});
  table.add({fmt::to_string(options.task.pairs), fmt::to_string(options.task.times),
             fmt::to_string(options.task.T()), fmt::to_string(kept), fmt::to_string(options.seed),
             fmt::to_string(result.steps), fmt::format("{:.3f}", result.share)});
  table.print();
  fmt::print("\n");
  print_paragraph(
      "found: the share of the values of 128 held-out sequences that the model names. kept: the "
      "elements that both layers keep of a sequence. A guess finds 1 in 32.");
  return 0;
}

}  // namespace t2t
