#include "20_split_models/planner/published.hpp"

#include <vector>

namespace t2t {

struct GptRow {
  std::string_view name;
  std::size_t H, C, L, t, p, devices, B;
  double teraflops;
};

/// GPT with four times C hidden elements, 51,200 tokens in its vocabulary, and 2,048 in a sequence.
static Published gpt(const GptRow& row) {
  return {.source = "Megatron-LM",
          .model = {.name = row.name,
                    .L = row.L,
                    .C = row.C,
                    .H = row.H,
                    .G = row.H,
                    .D = row.C / row.H,
                    .V = 51'200,
                    .F = 4 * row.C,
                    .matrices = 2},
          .cluster = cluster_of("a100", row.devices),
          .job = {.T = 2048, .B = row.B, .causal = false, .overlaps = false},
          .layout = {.t = row.t,
                     .p = row.p,
                     .d = row.devices / (row.t * row.p),
                     .chunks = row.p == 1 ? 1ul : 2ul,
                     .sharding = Sharding::none,
                     .recompute = true},
          .flops = 1e12 * row.teraflops,
          .fitted = row.L == 24 || row.p == 64};
}

static Published llama(std::size_t T, std::size_t B, const Layout& layout, double teraflops) {
  return {.source = "Llama 3",
          .model = known_model("llama-3-405b"),
          .cluster = cluster_of("h100", devices_of(layout)),
          .job = {.T = T, .B = B},
          .layout = layout,
          .flops = 1e12 * teraflops};
}

std::span<const Published> published_trainings() {
  static const std::vector<Published> all{
      gpt({"1.7 B", 24, 2304, 24, 1, 1, 32, 512, 137}),
      gpt({"3.6 B", 32, 3072, 30, 2, 1, 64, 512, 138}),
      gpt({"7.5 B", 32, 4096, 36, 4, 1, 128, 512, 142}),
      gpt({"18.4 B", 48, 6144, 40, 8, 1, 256, 1024, 135}),
      gpt({"39.1 B", 64, 8192, 48, 8, 2, 512, 1536, 138}),
      gpt({"76.1 B", 80, 10'240, 60, 8, 4, 1024, 1792, 140}),
      gpt({"145.6 B", 96, 12'288, 80, 8, 8, 1536, 2304, 148}),
      gpt({"310.1 B", 128, 16'384, 96, 8, 16, 1920, 2160, 155}),
      gpt({"529.6 B", 128, 20'480, 105, 8, 35, 2520, 2520, 163}),
      gpt({"1008.0 B", 160, 25'600, 128, 8, 64, 3072, 3072, 163}),
      llama(8192, 2048, {.t = 8, .p = 16, .d = 64, .chunks = 4}, 430),
      llama(8192, 2048, {.t = 8, .p = 16, .d = 128, .chunks = 4}, 400),
      llama(131'072, 128, {.t = 8, .c = 16, .p = 16, .d = 8, .chunks = 4}, 380)};
  return all;
}

static Published zero3(std::size_t devices, std::size_t micro_batch, double teraflops) {
  return {.source = "ZeRO-3",
          .model = known_model("gpt-3-175b"),
          .cluster = cluster_of("a100", devices),
          .job = {.T = 2048, .B = 1536, .causal = false, .overlaps = false},
          .layout = {.d = devices,
                     .micro_batch = micro_batch,
                     .sharding = Sharding::all,
                     .recompute = true},
          .flops = 1e12 * teraflops};
}

static Published deepseek() {
  Published training = {.source = "DeepSeek",
                        .model = known_model("deepseek-v3"),
                        .cluster = cluster_of("h800", 2048),
                        .job = {.T = 4096, .B = 15'360},
                        .layout = {.p = 16, .d = 128, .e = 64, .chunks = 2},
                        .flops = 0};
  const double tokens_a_second = 1e12 / (180'000.0 * 3600);  // of a device
  const double tokens = double(training.job.T * training.job.B);
  training.flops = tokens_a_second * step_flops(training.model, training.job, false) / tokens;
  return training;
}

std::span<const Published> published_with_hidden_messages() {
  static const std::vector<Published> all{zero3(384, 4, 144), zero3(768, 2, 88), zero3(1536, 1, 44),
                                          deepseek()};
  return all;
}

static StepTime time_of(const Published& training) {
  return step_time(training.model, training.cluster, training.job, training.layout);
}

static double flops_in(const Published& training, double seconds) {
  return step_flops(training.model, training.job, training.layout.recompute) /
         (double(devices_of(training.layout)) * seconds);
}

double predicted_flops(const Published& training) {
  return flops_in(training, total(time_of(training)));
}

double predicted_if_hidden(const Published& training) {
  return flops_in(training, with_messages_hidden(time_of(training)));
}

}  // namespace t2t
