#include "25_sinks/program/run_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "09_language_model/generate.hpp"
#include "10_pretrained/model/architecture.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/flags.hpp"
#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "25_sinks/gpt_oss/load_gpt_oss.hpp"
#include "25_sinks/layers/load_smollm3.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

/// What a token stands for, if the file says so.
static std::string word_of(const GgufFile& file, std::size_t id) {
  const char* key = "tokenizer.ggml.tokens";
  if (!file.metadata().has(key)) return "";
  const std::vector<std::string_view> tokens = file.metadata().texts(key);
  if (id >= tokens.size()) return "";
  return visible(from_byte_alphabet(tokens[id]).value_or(std::string(tokens[id])));
}

static void print_likeliest(const GgufFile& file, const Tensor<1>& logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  const std::size_t shown = std::min<std::size_t>(5, order.size());
  std::ranges::partial_sort(order, order.begin() + long(shown), std::ranges::greater(),
                            [&](std::size_t id) { return logits(id); });
  Table table({">token", ">logit", "word"});
  for (std::size_t i = 0; i < shown; ++i)
    table.add({fmt::format("{}", order[i]), fmt::format("{:.3f}", logits(order[i])),
               word_of(file, order[i])});
  table.print();
}

static void continue_ids(const GgufFile& file, const Model& model, ModelState& state,
                         const std::vector<int>& ids, std::size_t most) {
  const Config& config = model.config();
  std::size_t windows = 0, without_rope = 0;
  for (std::size_t l = 0; l < config.L; ++l) {
    windows += settings_of(config, l).window > 0;
    without_rope += !settings_of(config, l).uses_rope;
  }
  print_section("The model: " + model_name(file));
  const BlockSettings& block = config.block;
  print_paragraph(
      fmt::format("L = {}, C = {}, H = {}, G = {}, D = {}, V = {}; layers with a window: {}, "
                  "without RoPE: {}",
                  config.L, block.C, block.H, block.G, block.D, config.V, windows, without_rope));
  print_section(fmt::format("The likeliest tokens after {}", fmt::join(ids, ",")));
  Tensor<1> logits = empty(config.V);
  forward(model, state, ids, row(logits));
  print_likeliest(file, logits);
  print_section("Continued");
  const int first = greedy(row(logits));
  std::vector<int> more = {first};
  Random random(1);
  if (most > 1) {
    const int next[] = {first};
    const Generation generation{.most = most - 1, .sampling = {.temperature = 0}};
    for (const int id : generate(model, state, next, generation, random)) more.push_back(id);
  }
  std::string words;
  for (const int id : more) words += word_of(file, std::size_t(id));
  print_paragraph(fmt::format("{}", fmt::join(more, ",")));
  if (!words.empty()) print_paragraph(words);
}

/// The tokens of the prompt, or else the ids.
static std::vector<int> ids_to_continue(const GgufFile& file, const SinkFileFlags& flags,
                                        std::size_t V) {
  if (flags.prompt.empty()) return parse_ids(flags.ids, V);
  const Bpe bpe = read_tokenizer(file);
  std::vector<int> ids = bpe.encode(flags.prompt);
  if (const std::optional<int> first = bpe.first()) ids.insert(ids.begin(), *first);
  for (const int id : ids)
    if (std::size_t(id) >= V)
      throw std::runtime_error(
          fmt::format("{}: token {} of the prompt, but V = {}", file.name(), id, V));
  return ids;
}

void run_file(const SinkFileFlags& flags) {
  const GgufFile file = GgufFile::open(flags.model);
  if (is_gpt_oss(file)) {
    const std::vector<int> given = ids_to_continue(file, flags, read_gpt_oss_config(file).V);
    const GptOss gpt_oss =
        read_gpt_oss(file, flags.integers ? ExpertProducts::integers : ExpertProducts::floats);
    ModelState state = gpt_oss_state(gpt_oss, given.size() + flags.tokens);
    return continue_ids(file, gpt_oss.model, state, given, flags.tokens);
  }
  if (is_smollm3(file)) {
    const std::vector<int> given = ids_to_continue(file, flags, read_smollm3_config(file).V);
    const Model model = read_smollm3(file);
    ModelState state(model.config(), given.size() + flags.tokens);
    return continue_ids(file, model, state, given, flags.tokens);
  }
  throw std::runtime_error(
      fmt::format("{}: general.architecture: wanted gpt-oss or smollm3, got {}; chapter 10 reads "
                  "the others",
                  file.name(), visible(std::string(file.metadata().text("general.architecture")))));
}

}  // namespace t2t
