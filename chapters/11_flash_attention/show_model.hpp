// A model that reads a long prompt both ways: with chapter 04's whole rows of scores, and in
// blocks. For main.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "01_embedding/embedding.hpp"
#include "10_pretrained/load_model.hpp"
#include "10_pretrained/tokenizer.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "print.hpp"

namespace t2t {

/// A model and a prompt for it.
struct Reading {
  std::string name;
  Config config;
  ModelWeights weights;
  std::vector<int> ids;
};

/// The file's model, or, where there is none, one of the same widths that knows nothing.
inline Reading prepare(const std::string& path, const std::string& text, std::size_t T,
                       std::size_t seed) {
  Reading reading;
  if (std::filesystem::exists(path)) {
    const GgufFile file = GgufFile::open(path);
    reading = {"SmolLM2-135M-Instruct", read_config(file), {}, read_tokenizer(file).encode(text)};
    reading.weights = read_weights(file, reading.config);
  } else {
    Random random(seed);
    reading.config = resized(preset("smollm2-135m"), {.L = 4, .V = 256});
    reading.name = "untrained, 4 layers of SmolLM2-135M's widths (./learn weights fetches it)";
    reading.weights = draw_model(reading.config, random);
    reading.ids = byte_ids(text);
  }
  reading.ids.resize(std::min({T, reading.ids.size(), reading.config.T_max}));
  return reading;
}

/// Seconds that the prompt takes, all of it in one call. The first few tokens go through before, to
/// warm up.
inline double read_prompt(const Reading& reading, ModelState& state, Row logits) {
  const std::span<const int> ids = reading.ids;
  forward(reading.config, reading.weights, state, ids.first(std::min<std::size_t>(ids.size(), 32)),
          logits);
  reset(state);
  const auto start = std::chrono::steady_clock::now();
  forward(reading.config, reading.weights, state, ids, logits);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline void show_model(const Reading& reading) {
  const auto& [name, config, weights, ids] = reading;
  const std::size_t T = ids.size();
  Tensor<1> logits = empty(config.V), flash_logits = empty(config.V);
  ModelState state = model_state(config, T, T);
  const double seconds = read_prompt(reading, state, row(logits));
  const std::size_t scratch = state.scratch.attention.scores.size() * sizeof(float);
  state = model_state(config, T, T, flash_prefill(config.H, config.G, config.D));
  const double flash_seconds = read_prompt(reading, state, row(flash_logits));
  const std::size_t flash_scratch = FlashScratch(config.H, config.G, config.D).bytes();

  fmt::print("\n  {}, a prompt of {} tokens\n", name, T);
  Table table({"attention", ">the whole prompt", ">tokens/s", ">its scratch memory"});
  const auto add = [&](const char* way, double seconds, std::size_t bytes) {
    table.add({way, fmt::format("{:.2f} s", seconds), fmt::format("{:.0f}", double(T) / seconds),
               fmt::format("{:.0f} KiB", double(bytes) / 1024)});
  };
  add("whole rows of scores", seconds, scratch);
  add("in blocks", flash_seconds, flash_scratch);
  table.print();
  double apart = 0, largest = 0;
  for (std::size_t v = 0; v < config.V; ++v) {
    apart = std::max(apart, std::abs(double(logits(v)) - double(flash_logits(v))));
    largest = std::max(largest, std::abs(double(logits(v))));
  }
  const auto best = [](const Tensor<1>& x) { return std::ranges::max_element(x) - x.begin(); };
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Logits of up to {:.0f} differ by at most {:.0e}; the likeliest next token is {}.", largest,
      apart, best(logits) == best(flash_logits) ? "the same" : "another"));
}

}  // namespace t2t
