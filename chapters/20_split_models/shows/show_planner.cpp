#include "20_split_models/shows/show_planner.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "20_split_models/planner/published.hpp"
#include "program/print.hpp"

namespace t2t {

static std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
static std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }
static std::string teraflops(double flops) { return fmt::format("{:.0f}", flops / 1e12); }

static void show_best(const Plan& best) {
  const StepTime& time = best.time;
  const double seconds = total(time);
  Table table({"a step of the first layout", ">share", "a device's memory", ">"});
  table.add(
      {"products", percent(time.products / seconds), "weights", gigabytes(best.memory.weights)});
  table.add({"tensor, context and expert messages",
             percent((time.tensor + time.context + time.experts) / seconds), "gradients",
             gigabytes(best.memory.gradients)});
  table.add({"pipeline's bubble", percent(time.bubble / seconds), "optimizer",
             gigabytes(best.memory.optimizer)});
  table.add({"data messages that are not hidden", percent(time.data / seconds), "activations",
             gigabytes(best.memory.activations)});
  table.print();
}

void show_layouts(const ModelShape& model, const Cluster& cluster, const Job& job) {
  const std::vector<Plan> found = plans(model, cluster, job, 5);
  print_section(fmt::format("{} on {} devices ({})", model.name, with_commas(cluster.devices),
                            cluster.device));
  Table table({"layout", ">micro-batch", ">step", ">memory", ">of peak"});
  for (const Plan& plan : found) {
    const double flops = step_flops(model, job, false) / double(cluster.devices);
    table.add({layout_text(plan.layout), fmt::format("{}", plan.layout.micro_batch),
               duration_text(total(plan.time)), gigabytes(total(plan.memory)),
               percent(flops / total(plan.time) / cluster.peak)});
  }
  table.print();
  fmt::print("\n");
  show_best(found.front());
  fmt::print("\n");
  print_paragraph(fmt::format(
      "A step has {} sequences of {} tokens. Of peak: the FLOPs that the model needs, without any "
      "that are computed twice, as a share of what the devices could do at most.",
      with_commas(job.B), with_commas(job.T)));
}

/// The fastest layout in words, or why there is none.
static std::string choice(const ModelShape& model, std::size_t devices, const Job& job) {
  try {
    return layout_text(plans(model, cluster_of("h100", devices), job, 1).front().layout);
  } catch (const std::runtime_error&) {
    return "does not fit";
  }
}

void show_choices() {
  print_section("The fastest layouts for 4,096 sequences of 4,096 tokens on H100");
  Table table({"model", "64 devices", "1,024 devices", "16,384 devices"});
  for (const ModelShape& model : known_models()) {
    const auto on = [&](std::size_t devices) { return choice(model, devices, {4096, 4096}); };
    table.add({std::string(model.name), on(64), on(1024), on(16'384)});
  }
  table.print();
}

static std::string name_of(const Published& training) {
  return fmt::format("{} {}", training.source, training.model.name);
}

static void show_two_limits() {
  print_section("Between two limits: all messages take time of their own, or none does");
  Table table({"training", ">devices", "layout", ">published", ">shown", ">hidden"});
  for (const Published& training : published_with_hidden_messages())
    table.add({name_of(training), with_commas(training.cluster.devices),
               layout_text(training.layout), teraflops(training.flops),
               teraflops(predicted_flops(training)), teraflops(predicted_if_hidden(training))});
  table.print();
}

void show_published() {
  print_section("Published trainings, and what the formulas predict");
  Table table({"training", ">devices", "layout", ">published", ">predicted", ">error"});
  for (const Published& training : published_trainings()) {
    const double predicted = predicted_flops(training), error = predicted / training.flops - 1;
    table.add({name_of(training), with_commas(training.cluster.devices),
               layout_text(training.layout), teraflops(training.flops), teraflops(predicted),
               training.fitted ? "fitted" : fmt::format("{:+.1f} %", 100 * error)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "In 10¹² FLOP/s of one device, counted as the authors do: Megatron-LM's with the forward "
      "pass that is computed twice. Fitted: the two constants of a product's speed come from "
      "these trainings.");
  show_two_limits();
}

}  // namespace t2t
