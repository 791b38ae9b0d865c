#include "23_latent/shows/continue_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "09_language_model/sampling.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/flags.hpp"
#include "program/print.hpp"
#include "tensor.hpp"
#include "utf8_start.hpp"

namespace t2t {

std::size_t FilePrompt::room(std::size_t tokens, std::size_t T_max) const {
  return ids.empty() ? 0 : std::min(tokens, T_max - ids.size());
}

FilePrompt read_prompt(const Program& program, const std::string& text, const std::string& ids,
                       const GgufFile& file, std::size_t V, std::size_t T_max) {
  FilePrompt prompt;
  try {
    prompt.bpe = read_tokenizer(file);
  } catch (const std::runtime_error& error) {
    if (program.given("prompt")) throw;
    prompt.why = error.what();
  }
  if (program.given("ids")) {
    prompt.ids = parse_ids(ids, V);
  } else if (prompt.bpe) {
    if (prompt.bpe->size() > V)
      throw std::runtime_error(fmt::format("{}: {} tokens in its vocabulary, but V = {}",
                                           file.name(), prompt.bpe->size(), V));
    prompt.text = program.given("prompt") ? text : "Once upon a time";
    prompt.ids = prompt.bpe->encode(prompt.text);
    if (const std::optional<int> first = prompt.bpe->first())
      prompt.ids.insert(prompt.ids.begin(), *first);
  } else {
    return prompt;
  }
  if (prompt.ids.empty() || prompt.ids.size() >= T_max)
    throw std::invalid_argument(
        fmt::format("the prompt: wanted 1 to {} tokens, got {}", T_max - 1, prompt.ids.size()));
  return prompt;
}

/// Greedy tokens after the prompt, up to one of the vocabulary's ends, which is left out.
static std::vector<int> continued(const FilePrompt& prompt, std::size_t V, std::size_t most,
                                  const FilePass& pass) {
  const std::vector<int> ends = prompt.bpe ? prompt.bpe->ends() : std::vector<int>();
  std::vector<int> more, next = prompt.ids;
  Tensor<2> logits = empty(1, V);
  while (more.size() < most) {
    pass(next, logits);
    next = {greedy(row(logits, 0))};
    if (std::ranges::find(ends, next[0]) != ends.end()) break;
    more.push_back(next[0]);
  }
  return more;
}

void show_continuation(const FilePrompt& prompt, std::size_t V, std::size_t most,
                       const FilePass& pass) {
  print_section("Continued greedily");
  if (prompt.ids.empty()) {
    print_paragraph(fmt::format(
        "There is no text to continue, because of its vocabulary: {}. --ids 1,2,3 continues ids.",
        prompt.why));
    return;
  }
  const std::vector<int> more = continued(prompt, V, most, pass);
  fmt::print("ids   [{}]\nthen  [{}]\n", fmt::join(prompt.ids, ", "), fmt::join(more, ", "));
  if (!prompt.text.empty())
    fmt::print("\n{}\n", printable_lines(prompt.text + prompt.bpe->said(more)));
}

}  // namespace t2t
