// The flags of this chapter's program, and which of them go together. For main.cpp.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "09_language_model/sampling_flags.hpp"
#include "10_pretrained/default_model.hpp"
#include "files.hpp"
#include "program.hpp"
#include "utf8_start.hpp"

namespace t2t {

/// What the flags say.
struct Flags {
  std::string model = default_model(), prompt, ids, system, pairing = "neighbours";
  std::string tokenize, tokenize_file, logits, perplexity, trace, with;
  std::vector<std::string> compare;
  std::size_t tokens = 64, window = 512, context = 2048;
  bool chat = false, special = false, bench = false, info = false;
  Sampling sampling = {.temperature = 0};
};

inline void add_flags(Program& program, Flags& flags) {
  program.path("model", flags.model, "a GGUF file of a llama, qwen2 or qwen3 model");
  program.word("prompt", flags.prompt, "text to go on from");
  program.word("ids", flags.ids, "the same as token ids: 1,2,3");
  program.yes("chat", flags.chat, "talk: questions from the keyboard or a pipe, a line each");
  program.word("system", flags.system, "system prompt of a chat, in place of the model's own");
  program.size("tokens", flags.tokens, "to say at most; in a chat, for each answer");
  program.size("context", flags.context, "tokens of a chat to remember");
  add_sampling_flags(program, flags.sampling);
  program.word("tokenize", flags.tokenize, "print this text's ids, and stop");
  program.path("tokenize-file", flags.tokenize_file, "the same of a file");
  program.yes("special", flags.special, "read <|im_start|> and such in texts as tokens");
  program.path("logits", flags.logits, "file.npy for the last position's [V]");
  program.path("perplexity", flags.perplexity, "a text file: how well does the model predict it?");
  program.size("window", flags.window, "tokens that are read together for a perplexity");
  program.path("trace", flags.trace, "folder for every part of every layer, as .npy");
  program.words("compare", flags.compare, 2,
                "two folders of traces: where do they part? Ends with status 1 if they do");
  program.path("with", flags.with, "the second of them, if --compare names one");
  program.word("pairing", flags.pairing, "neighbours, or halves, which these files do not have");
  program.yes("bench", flags.bench, "prefill of 512 tokens and decode of 128, timed");
  program.yes("info", flags.info, "metadata and tensors of the file");
}

/// The program does one thing at a time, and says so rather than leave a flag unheard. Throws
/// std::invalid_argument.
inline void expect_one_task(const Program& program) {
  const auto refuse = [](const std::string& a, const std::string& b) {
    throw std::invalid_argument(fmt::format("--{} and --{}: wanted one of them at a time", a, b));
  };
  std::string task;
  for (const char* flag :
       {"chat", "tokenize", "tokenize-file", "perplexity", "compare", "bench", "info"}) {
    if (!program.given(flag)) continue;
    if (!task.empty()) refuse(task, flag);
    task = flag;
  }
  // What is made of a prompt goes with a prompt, and both files can be had of the same.
  for (const char* flag : {"prompt", "ids", "logits", "trace"})
    if (!task.empty() && program.given(flag)) refuse(task, flag);
  if (program.given("prompt") && program.given("ids")) refuse("prompt", "ids");
}

/// Values that no task can use. Throws std::invalid_argument.
inline void expect_flags(const Program& program, const Flags& flags) {
  expect_sampling(flags.sampling);
  expect_one_task(program);
  if (program.given("system") && !flags.chat)
    throw std::invalid_argument("--system: it is a chat's; wanted --chat too");
  if (program.given("logits")) expect_writable(flags.logits);
  if ((program.given("compare") || program.given("with")) && flags.compare.size() != 2)
    throw std::invalid_argument(
        fmt::format("--compare: wanted two folders, got {}",
                    flags.compare.size() == 1 ? "one" : std::to_string(flags.compare.size())));
  if (flags.pairing != "neighbours" && flags.pairing != "halves")
    throw std::invalid_argument("--pairing: wanted neighbours or halves, got " +
                                printable(flags.pairing));
}

inline std::vector<int> parse_ids(const std::string& text, std::size_t V) {
  std::vector<int> ids;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    std::size_t used = 0;
    long long id = -1;
    try {
      id = std::stoll(word, &used);
    } catch (const std::exception&) {
    }
    if (used != word.size() || id < 0 || std::size_t(id) >= V)
      throw std::invalid_argument(fmt::format(
          "--ids: wanted whole numbers below {}, as in 1,2,3, got {}", V, printable(word)));
    ids.push_back(int(id));
    at = end + 1;
  }
  return ids;
}

}  // namespace t2t
