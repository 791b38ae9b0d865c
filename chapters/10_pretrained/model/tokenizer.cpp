#include "10_pretrained/model/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace t2t {

/// The id under a key, in a vocabulary of V tokens.
static std::optional<int> token_id(const GgufFile& file, std::string_view key, std::size_t V) {
  if (!file.metadata().has(key)) return std::nullopt;
  const std::int64_t id = file.metadata().integer(key);
  if (id < 0 || std::uint64_t(id) >= V)
    throw std::runtime_error(
        fmt::format("{}: {}: wanted one of {} tokens, got {}", file.name(), key, V, id));
  return int(id);
}

BpeTables read_tables(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const std::string_view model = metadata.text("tokenizer.ggml.model");
  if (model != "gpt2")
    throw std::runtime_error(fmt::format(
        "{}: tokenizer.ggml.model: wanted gpt2, a byte-level BPE, got {}{}", file.name(),
        printable(model), model == "llama" ? ", SentencePiece's, which is not built" : ""));

  BpeTables tables;
  tables.name = file.name();
  tables.pre_tokenizer = metadata.text("tokenizer.ggml.pre");
  for (const std::string_view token : metadata.texts("tokenizer.ggml.tokens"))
    tables.tokens.emplace_back(token);
  for (const std::string_view merge : metadata.texts("tokenizer.ggml.merges"))
    tables.merges.emplace_back(merge);
  tables.kinds.assign(tables.tokens.size(), TokenKind::normal);
  if (metadata.has("tokenizer.ggml.token_type")) {
    tables.kinds.clear();
    for (const std::int64_t kind : metadata.integers("tokenizer.ggml.token_type"))
      tables.kinds.push_back(TokenKind(std::clamp<std::int64_t>(kind, 0, 7)));
  }
  const auto id = [&](std::string_view key) { return token_id(file, key, tables.tokens.size()); };
  tables.bos = id("tokenizer.ggml.bos_token_id");
  tables.eos = id("tokenizer.ggml.eos_token_id");
  tables.eot = id("tokenizer.ggml.eot_token_id");
  tables.eom = id("tokenizer.ggml.eom_token_id");
  const char* bos_first = "tokenizer.ggml.add_bos_token";
  if (metadata.has(bos_first)) tables.bos_first = metadata.truth(bos_first, false);
  return tables;
}

Bpe read_tokenizer(const GgufFile& file) { return Bpe(read_tables(file)); }

}  // namespace t2t
