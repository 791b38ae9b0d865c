// Shows an untrained model: the shapes that flow through it, what it writes, its loss compared with
// ln V, an encoder-decoder, and counts of the parameters, FLOPs and bytes of several models.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/program/sampling_flags.hpp"
#include "09_language_model/shows/show_accounts.hpp"
#include "09_language_model/shows/show_encoder_decoder.hpp"
#include "09_language_model/shows/show_model.hpp"
#include "09_language_model/shows/show_sequences.hpp"
#include "09_language_model/shows/show_speed.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "shapes.hpp"

using namespace t2t;

static void show_model(const Program& program, const Config& config, std::size_t prompt_bytes,
                       std::size_t tokens, const Sampling& sampling) {
  Random random(program.seed());
  const std::vector<int> ids = byte_ids(program.text(std::min<std::size_t>(config.T_max, 256)));
  const std::vector<int> prompt(ids.begin(),
                                ids.begin() + long(std::min(prompt_bytes, ids.size())));
  const Model model(config, draw_model(config, random));
  show_flow(program, model, prompt);
  show_speech(model, prompt, tokens, sampling, program.seed());
  show_loss(model, ids);
  show_sequences(model, ids);
}

/// The weights, one sequence's caches, and the logits of 256 tokens and a few more.
static double bytes_needed(const Config& config, std::size_t S) {
  const InferenceMemory memory = inference_memory(config, std::min(S, config.T_max), sizeof(float));
  return memory.weights + memory.cache + sizeof(float) * (256 + 16) * double(config.V);
}

/// What the flags say.
struct ModelFlags {
  std::string name = "foundry-small";
  Sizes sizes;
  bool tied = false;
  std::size_t prompt = 32, tokens = 40;
  Sampling sampling{.temperature = 0.7f, .top_k = 40, .top_p = 0.9f};
};

static void add_flags(Program& program, ModelFlags& flags) {
  Sizes& sizes = flags.sizes;
  program.takes_text();
  program.word("model", flags.name,
               "preset to start from: foundry-small, gpt2, smollm2-135m or llama2-7b");
  program.size("width", sizes.C, "C, width of the residual stream, in place of the preset's");
  program.size("layers", sizes.L, "L, number of blocks, in place of the preset's");
  program.size("heads", sizes.H, "H, query heads, in place of the preset's; divides C");
  program.size("groups", sizes.G, "G, key and value heads, in place of the preset's; divides H");
  program.size("ffn", sizes.F, "F, width of the feed-forward network, in place of the preset's");
  program.size("vocabulary", sizes.V,
               "V, tokens in the vocabulary, at least 256, in place of the preset's");
  program.size("context", sizes.T_max,
               "T_max, tokens of the longest sequence, in place of the preset's");
  program.yes("tied", flags.tied, "use the embedding's table as the head too");
  program.size("prompt", flags.prompt, "bytes of the text that the model starts from");
  program.size("tokens", flags.tokens, "tokens to generate");
  add_sampling_flags(program, flags.sampling);
}

/// The model that the flags describe. Throws std::invalid_argument for one that can't be.
static Config config_of(const ModelFlags& flags) {
  Config config = resized(preset(flags.name), flags.sizes);
  config.tied = config.tied || flags.tied;
  expect_config(config);
  expect_sampling(flags.sampling);
  expect(config.V >= 256, "--vocabulary", "at least 256, for bytes", config.V);
  expect(flags.prompt <= config.T_max, "--prompt", fmt::format("at most T_max = {}", config.T_max),
         flags.prompt);
  return config;
}

/// Runs the model, unless that would take long.
static void show_small_model(const Program& program, const ModelFlags& flags,
                             const Config& config) {
  const std::size_t parameters = total(count_parameters(config));
  if (parameters <= 200'000'000 && config.L <= 1000) {
    expect_memory(bytes_needed(config, flags.prompt + flags.tokens),
                  "--width, --layers, --vocabulary and --tokens");
    show_model(program, config, flags.prompt, flags.tokens, flags.sampling);
  } else {
    print_paragraph(fmt::format(
        "A model of {} parameters in {} blocks is only counted here, because drawing and running "
        "it would take long.",
        with_commas(parameters), with_commas(config.L)));
  }
}

/// The tables show all presets, and the model that the flags describe, if they changed one.
static void show_counts(const ModelFlags& flags, const Config& config) {
  std::vector<Named> models;
  for (const std::string_view of : preset_names()) models.emplace_back(of, preset(of));
  Config small = preset("foundry-small");
  small.tied = true;
  models.insert(models.begin() + 1, {"  tied", small});
  if (flags.sizes != Sizes{} || flags.tied) models.emplace_back("your flags", config);
  show_parameters(models);
  models.erase(models.begin() + 1);
  show_rules(models);
  show_work(models);
  show_memory(models);
}

int main(int argc, char** argv) {
  ModelFlags flags;
  Program program("09_language_model",
                  "A whole language model with random weights: what it writes, its loss, and the "
                  "parameters, FLOPs and bytes of four models, counted.");
  add_flags(program, flags);
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    const Config config = config_of(flags);
    show_small_model(program, flags, config);
    show_filters();
    show_encoder_decoder(program.seed());
    show_counts(flags, config);
    Random random(program.seed());
    show_speed(random);
    fmt::print("\n");
    print_paragraph(
        "Next: ./learn run 10 loads a trained model. This chapter's page: "
        "docs/09_language_model.md");
  });
}
