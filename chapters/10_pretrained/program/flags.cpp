#include "10_pretrained/program/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "09_language_model/program/sampling_flags.hpp"
#include "10_pretrained/model/long_context.hpp"
#include "files/files.hpp"
#include "utf8_start.hpp"

namespace t2t {

void add_flags(Program& program, Flags& flags) {
  program.input("model", flags.model, "a GGUF file of a llama, granite, qwen or gemma model");
  program.input("adapter", flags.adapter, "a LoRA adapter for the model, as chapter 17 writes it");
  program.word("prompt", flags.prompt, "text to continue");
  program.word("ids", flags.ids, "text to continue, as token ids: 1,2,3");
  program.yes("chat", flags.chat,
              "chat: reads questions from the keyboard or a pipe, one per line");
  program.word("system", flags.system,
               "system prompt of the chat; default: the model's own; \"\": none");
  program.size("tokens", flags.tokens,
               "most tokens to generate, in a chat for each answer; with --perplexity-by-position, "
               "tokens of the text to read");
  program.size("context", flags.context, "longest conversation of a chat, in tokens");
  add_sampling_flags(program, flags.sampling);
  program.word("tokenize", flags.tokenize, "print the token ids of this text");
  program.input("tokenize-file", flags.tokenize_file, "print the token ids of a text file");
  program.yes("special", flags.special, "read marks such as <|im_start|> in a text as tokens");
  program.output("logits", flags.logits,
                 "write the last position's logits, [V], to this .npy file");
  program.input("perplexity", flags.perplexity, "print the perplexity of a text file");
  program.input("perplexity-by-position", flags.by_position,
                "print the perplexity of a text file, one line for each --window of positions");
  program.yes("alone", flags.alone,
              "with --perplexity-by-position: read each window without the text before it");
  program.size("window", flags.window, "length of a window for a perplexity, in tokens");
  program.word("rope-scaling", flags.rope_scaling,
               "lengthen the context: none, linear, ntk, llama3 or yarn, and a factor: yarn=2");
  program.output("export", flags.export_to,
                 "write the model and the ids of --prompt to this file, for whole_model.cpp");
  program.output("trace", flags.trace, "write all parts of all layers to this folder, as .npy",
                 NamedFile::npy_written);
  program.inputs("compare", flags.compare, 2,
                 "compare two folders of traces; exit status 1 if they differ", "DIR DIR");
  program.input("with", flags.with, "the second folder, when --compare names only one", "DIR");
  program.word("pairing", flags.pairing,
               "pairs that RoPE rotates: neighbours or halves (one is wrong for each file); "
               "default: the file's own");
  program.yes("bench", flags.bench, "time a prefill of 512 tokens and a decode of 128");
  program.yes("info", flags.info, "list the file's metadata and tensors");
}

void expect_flags(const Program& program, const Flags& flags) {
  expect_sampling(flags.sampling);
  if (program.given("rope-scaling")) parse_long_context(flags.rope_scaling);
  if (program.given("logits")) expect_writable(flags.logits);
  if (program.given("export")) expect_writable(flags.export_to);
  if (program.given("pairing") && flags.pairing != "neighbours" && flags.pairing != "halves")
    throw std::invalid_argument("--pairing: wanted neighbours or halves, got " +
                                printable(flags.pairing));
}

std::vector<int> parse_ids(const std::string& text, std::size_t V) {
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
      throw std::invalid_argument(
          fmt::format("--ids: wanted integers below {}, as in 1,2,3, got {}", V, printable(word)));
    ids.push_back(int(id));
    at = end + 1;
  }
  return ids;
}

}  // namespace t2t
