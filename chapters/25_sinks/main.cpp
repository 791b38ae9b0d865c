// Attention sinks, a learned score in each head that takes weight and adds nothing, and the model
// around them: MXFP4, layers that differ, gpt-oss.
#include "25_sinks/program/run_file.hpp"
#include "25_sinks/shows/show_layers.hpp"
#include "25_sinks/shows/show_mxfp4.hpp"
#include "25_sinks/shows/show_sinks.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

int main(int argc, char** argv) {
  SinkFileFlags file;
  Program program("25_sinks",
                  "A sink is a learned score in each head that competes with the keys and has no "
                  "value. Shows what it takes of a row's weight, a head that learns one, and what "
                  "gpt-oss has besides: MXFP4, and layers that differ.");
  program.input("model", file.model,
                "run this file of gpt-oss or SmolLM3 (GGUF), and nothing else");
  program.word("prompt", file.prompt, "with --model: a text to continue");
  program.word("ids", file.ids, "with --model: the tokens that are given, such as 3,14,15");
  program.size("tokens", file.tokens, "with --model: how many tokens follow");
  program.yes(
      "integers", file.integers,
      "with --model: multiply gpt-oss's experts as integers, faster and in twice the memory");
  program.has_solutions(solutions);
  return program.run(argc, argv, [&] {
    if (!file.model.empty()) return run_file(file);
    show_by_hand();
    program.save("shares", show_shares(program.seed()));
    show_learned(program.seed());
    show_fp4_values();
    show_mxfp4_errors();
    show_layer_caches();
    show_gpt_oss_weights();
  });
}
