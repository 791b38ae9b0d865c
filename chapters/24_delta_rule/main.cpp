// Shows linear attention and the gated delta rule: two tokens by hand, what a state remembers, what
// it weighs beside a cache, and a text in many calls. --recall trains a model to look things up.
// --model runs a file of Qwen3-Next's architecture.
#include <fmt/format.h>

#include "24_delta_rule/chunks/delta_chunks.hpp"
#include "24_delta_rule/shows/show_learned.hpp"
#include "24_delta_rule/shows/show_memory.hpp"
#include "24_delta_rule/shows/show_qwen3_next.hpp"
#include "24_delta_rule/shows/show_rules.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "random.hpp"
#include "timing/measure.hpp"

using namespace t2t;

/// One head's time for each form.
static void show_delta_speed() {
  print_section("Speed");
  const std::size_t T = 1024, D = 64;
  Random random(1);
  DeltaTokens tokens{random.normal<2>({T, D}, 0.125f), unit_rows(random.normal<2>({T, D})),
                     random.normal<2>({T, D}), random.uniform<1>({T}, -0.1f, 0),
                     random.uniform<1>({T})};
  Tensor<2> state = xt::zeros<float>({D, D});
  const auto seconds = [&](auto form) {
    return duration_text(median_seconds([&] { form(); }) / double(T));
  };
  fmt::print("  step by step     {} per token\n",
             seconds([&] { delta_recurrence(tokens, StateRule::correct, state); }));
  for (const std::size_t c : {16, 32, 64})
    fmt::print("  in chunks of {}  {} per token\n", c,
               seconds([&] { delta_chunks(tokens, StateRule::correct, c, state); }));
  fmt::print("\n");
  print_paragraph("One head, D = 64. The page: docs/24_delta_rule.md");
}

int main(int argc, char** argv) {
  std::size_t T = 100;
  RecallOptions recall{.kind = {}, .task = {.pairs = 8}};
  Qwen3NextFlags file;
  Program program("24_delta_rule",
                  "Linear attention and the gated delta rule: a state of fixed size in the place "
                  "of a cache, and what it remembers. --model runs a file of Qwen3-Next's "
                  "architecture.");
  program.takes_text();
  program.size("tokens", T, "bytes of the text, T; with --model, tokens to generate at most");
  program.word("recall", recall.kind,
               "train a small model to look up values: attention, window, linear, delta, hybrid");
  program.size("pairs", recall.task.pairs, "with --recall: pairs of a key and a value");
  program.size("times", recall.task.times, "with --recall: how often each key is written");
  program.size("steps", recall.steps, "with --recall: steps of training at most");
  program.number("rate", recall.rate, "with --recall: the learning rate at its peak");
  program.input("model", file.model, "a GGUF file of the architecture qwen3next");
  program.word("prompt", file.prompt, "with --model: a text to continue");
  program.word("ids", file.ids, "with --model: ids to continue, as in 1,2,3");
  program.has_solutions(solutions);
  const Task run_file = {"model", {"prompt", "ids", "tokens"}, [&] {
                           file.tokens = T;
                           return show_qwen3_next(program, file);
                         }};
  const Task learned = {"recall", {"pairs", "times", "steps", "rate", "seed"}, [&] {
                          recall.seed = program.seed();
                          return show_learned(recall);
                        }};
  const Task tour = {"", {"tokens", "text", "file", "seed", "save"}, [&] {
                       expect_memory(double(program.text(T).size()) * 64 * 64, "--tokens");
                       show_two_tokens();
                       show_recall(program.seed());
                       show_rewritten(program.seed());
                       show_state_bytes();
                       show_delta_operations();
                       show_two_calls(program, T);
                       show_delta_speed();
                       return 0;
                     }};
  return program.run_tasks(argc, argv,
                           {{run_file, learned, tour}, {{"prompt", "ids"}, {"text", "file"}}});
}
