#include "11_flash_attention/shows/show_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "01_embedding/embedding.hpp"
#include "09_language_model/sampling.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "program/print.hpp"

namespace t2t {

PreparedModel prepare(const std::string& path, const std::string& text, std::size_t T,
                      std::size_t seed) {
  const auto first = [&](std::vector<int> ids, const Model& model) {
    ids.resize(std::min({T, ids.size(), model.config().T_max}));
    return ids;
  };
  if (std::filesystem::exists(path)) {
    const GgufFile file = GgufFile::open(path);
    Model model = read_model(file);
    std::vector<int> ids = first(read_tokenizer(file).encode(text), model);
    return {model_name(file), std::move(model), std::move(ids)};
  }
  Random random(seed);
  const Config config = resized(preset("smollm2-135m"), {.L = 4, .V = 256});
  Model model(config, draw_model(config, random));
  std::vector<int> ids = first(byte_ids(text), model);
  return {"untrained, 4 layers of SmolLM2-135M's widths (./learn weights fetches it)",
          std::move(model), std::move(ids)};
}

/// Seconds for the whole prompt in one call, after a call with its first tokens as a warm-up.
static double read_prompt(const PreparedModel& prepared, ModelState& state, Row logits) {
  const std::span<const int> ids = prepared.ids;
  forward(prepared.model, state, ids.first(std::min<std::size_t>(ids.size(), 32)), logits);
  reset(state);
  const auto start = std::chrono::steady_clock::now();
  forward(prepared.model, state, ids, logits);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void show_model(const PreparedModel& prepared) {
  const Config& config = prepared.model.config();
  const std::size_t H = config.block.H, G = config.block.G, D = config.block.D;
  const std::size_t T = prepared.ids.size();
  Tensor<1> logits = empty(config.V), flash_logits = empty(config.V);
  ModelState state(config, T, {.chunk = T});
  const double seconds = read_prompt(prepared, state, row(logits));
  const std::size_t scratch = GroupedScratch(T, T, H, D).scores.size() * sizeof(float);
  // [hand_over]
  state = ModelState(config, T, {.chunk = T, .kernel = flash_kernel(H, G, D, T)});
  // [/hand_over]
  const double flash_seconds = read_prompt(prepared, state, row(flash_logits));
  const std::size_t flash_scratch = FlashScratch(H, G, D).bytes();

  fmt::print("\n  {}, a prompt of {} tokens\n", prepared.name, T);
  Table table({"attention", ">the whole prompt", ">tokens/s", ">scratch memory"});
  const auto add = [&](const char* way, double seconds, std::size_t bytes) {
    table.add({way, fmt::format("{:.2f} s", seconds), fmt::format("{:.0f}", double(T) / seconds),
               fmt::format("{:.0f} KiB", double(bytes) / 1024)});
  };
  add("whole rows of scores", seconds, scratch);
  add("flash attention", flash_seconds, flash_scratch);
  table.print();
  double apart = 0, largest = 0;
  for (std::size_t v = 0; v < config.V; ++v) {
    apart = std::max(apart, std::abs(double(logits(v)) - double(flash_logits(v))));
    largest = std::max(largest, std::abs(double(logits(v))));
  }
  const bool same = greedy(row(logits)) == greedy(row(flash_logits));  // throws for NaN
  fmt::print("\n");
  print_paragraph(
      fmt::format("The logits, of magnitude up to {:.0f}, differ by at most {:.0e}. The most "
                  "likely next token is {}.",
                  largest, apart, same ? "the same" : "different"));
}

}  // namespace t2t
