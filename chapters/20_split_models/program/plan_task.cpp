#include "20_split_models/program/plan_task.hpp"

#include "20_split_models/shows/show_planner.hpp"
#include "shapes.hpp"

namespace t2t {

void add_plan_flags(Program& program, PlanFlags& flags) {
  program.word("plan", flags.model,
               "finds the best split to train a model: llama-2-7b, llama-2-70b, gpt-3-175b, "
               "mixtral-8x7b, deepseek-v3 or llama-3-405b");
  program.size("devices", flags.devices, "for --plan: how many devices there are");
  program.word("accelerator", flags.accelerator, "for --plan: a100, h100 or h800");
  program.number("memory", flags.memory, "for --plan: GB of a device; 0: the accelerator's 80");
  program.number("bandwidth", flags.bandwidth,
                 "for --plan: GB/s of a device inside its node; 0: the accelerator's");
  program.number("network", flags.network,
                 "for --plan: GB/s of a device between nodes; 0: the accelerator's");
  program.size("sequences", flags.sequences, "for --plan: sequences of a step");
  program.size("length", flags.length, "for --plan: tokens of a sequence");
}

std::vector<std::string> plan_flags() {
  return {"devices", "accelerator", "memory", "bandwidth", "network", "sequences", "length"};
}

/// Replaces the accelerator's own figure if another one is given.
static void replace(const char* name, double& own, float given) {
  expect(given >= 0, name, "at least 0", given);
  if (given > 0) own = 1e9 * double(given);
}

int show_plan(const PlanFlags& flags) {
  constexpr std::size_t most = 1'000'000;
  expect(flags.devices <= most, "--devices", "at most 1000000", flags.devices);
  expect(flags.sequences <= most, "--sequences", "at most 1000000", flags.sequences);
  expect(flags.length <= most, "--length", "at most 1000000", flags.length);
  const ModelShape& model = known_model(flags.model);
  Cluster cluster = cluster_of(flags.accelerator, flags.devices);
  replace("--memory", cluster.memory, flags.memory);
  replace("--bandwidth", cluster.node_bandwidth, flags.bandwidth);
  replace("--network", cluster.network, flags.network);
  show_layouts(model, cluster, {flags.length, flags.sequences});
  show_choices();
  show_published();
  return 0;
}

}  // namespace t2t
