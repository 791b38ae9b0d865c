// Shows an untrained model: what flows through it, how it babbles, its loss beside ln V, and exact
// accounts of what models hold, compute and take in memory.
#include <fmt/format.h>

#include <algorithm>

#include "09_language_model/sampling_flags.hpp"
#include "09_language_model/show_accounts.hpp"
#include "09_language_model/show_encoder_decoder.hpp"
#include "09_language_model/show_model.hpp"
#include "09_language_model/show_speed.hpp"
#include "09_language_model/show_texts.hpp"
#include "memory.hpp"
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
  show_texts(model, ids);
}

/// The weights, one text's caches, and logits of 256 tokens and more.
static double bytes_needed(const Config& config, std::size_t S) {
  const InferenceMemory memory = inference_memory(config, std::min(S, config.T_max), sizeof(float));
  return memory.weights + memory.cache + sizeof(float) * (256 + 16) * double(config.V);
}

int main(int argc, char** argv) {
  std::string name = "foundry-small";
  Sizes sizes;
  bool tied = false;
  std::size_t prompt = 32, tokens = 40;
  Sampling sampling{.temperature = 0.7f, .top_k = 40, .top_p = 0.9f};
  Program program("09_language_model",
                  "A whole language model, untrained: it babbles, its loss is counted, and so are "
                  "the parameters, FLOPs and bytes of four published or planned models.");
  program.takes_text();
  program.word("model", name, "a preset: foundry-small, gpt2, smollm2-135m or llama2-7b");
  program.size("width", sizes.C, "of the residual stream, C, in place of the preset's");
  program.size("layers", sizes.L, "blocks, L, likewise; as are the next five");
  program.size("heads", sizes.H, "of queries, H; divides C");
  program.size("groups", sizes.G, "heads of keys and values, G; divides H");
  program.size("ffn", sizes.F, "feed-forward width, F");
  program.size("vocabulary", sizes.V, "V; at least 256, for bytes");
  program.size("context", sizes.T_max, "T_max");
  program.yes("tied", tied, "the embedding's table serves as the head too");
  program.size("prompt", prompt, "bytes of the text to begin with");
  program.size("tokens", tokens, "to go on for");
  add_sampling_flags(program, sampling);

  return program.run(argc, argv, [&] {
    Config config = resized(preset(name), sizes);
    config.tied = config.tied || tied;
    expect_config(config);
    expect_sampling(sampling);
    expect(config.V >= 256, "--vocabulary", "at least 256, for bytes", double(config.V));
    expect(prompt <= config.T_max, "--prompt", fmt::format("at most T_max = {}", config.T_max),
           double(prompt));

    const std::size_t parameters = total(count_parameters(config));
    if (parameters <= 200'000'000 && config.L <= 1000) {
      expect_memory(bytes_needed(config, prompt + tokens),
                    "--width, --layers, --vocabulary and --tokens");
      show_model(program, config, prompt, tokens, sampling);
    } else {
      print_paragraph(
          fmt::format("{} parameters in {} blocks would take a while to draw and to run: they are "
                      "only counted.",
                      with_commas(parameters), with_commas(config.L)));
    }
    show_filters();
    show_encoder_decoder(program.seed());

    // Counted beside the presets: the model as the flags have it, if they changed it.
    std::vector<Named> models;
    for (const std::string_view of : preset_names()) models.emplace_back(of, preset(of));
    Config small = preset("foundry-small");
    small.tied = true;
    models.insert(models.begin() + 1, {"  tied", small});
    if (sizes != Sizes{} || tied) models.emplace_back("your flags", config);
    show_parameters(models);
    models.erase(models.begin() + 1);
    show_rules(models);
    show_work(models);
    show_memory(models);
    Random random(program.seed());
    show_speed(random);
    fmt::print("\n");
    print_paragraph(
        "Next: ./learn run 10 loads a model that has learned; the page: docs/09_language_model.md");
  });
}
