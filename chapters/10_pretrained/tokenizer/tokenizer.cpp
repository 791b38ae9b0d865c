#include "10_pretrained/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace t2t {

static std::optional<int> token_id(const GgufFile& file, std::string_view key) {
  if (!file.metadata().has(key)) return std::nullopt;
  const std::int64_t id = file.metadata().integer(key);
  // Bpe checks it against the vocabulary; here it must only fit an int.
  return int(std::clamp<std::int64_t>(id, -1, std::numeric_limits<int>::max()));
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
  tables.bos = token_id(file, "tokenizer.ggml.bos_token_id");
  tables.eos = token_id(file, "tokenizer.ggml.eos_token_id");
  const char* bos_first = "tokenizer.ggml.add_bos_token";
  if (metadata.has(bos_first)) tables.bos_first = metadata.truth(bos_first, false);
  return tables;
}

Bpe read_tokenizer(const GgufFile& file) { return Bpe(read_tables(file)); }

}  // namespace t2t
