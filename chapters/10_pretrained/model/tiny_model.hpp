// A small random model as the bytes of a GGUF file. Its tokenizer has a token for each byte and no
// merges. For tests, and for the program when the real weights are missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/tokenizer/byte_alphabet.hpp"

namespace t2t {

/// Small sizes. V: a token for each of 256 bytes and the two marks of ChatML.
inline Config tiny_config() {
  return {.block = llama_style(64, 4, 2, 96), .L = 2, .V = 258, .T_max = 256};
}

/// The first V, at most 258, of these tokens. The second mark ends a text.
inline BpeTables tiny_tokenizer(std::size_t V) {
  BpeTables tables;
  tables.name = "tiny", tables.pre_tokenizer = "smollm";
  tables.tokens = byte_tokens();
  tables.kinds.assign(256, TokenKind::normal);
  for (const char* mark : {"<|im_start|>", "<|im_end|>"}) {
    tables.tokens.push_back(mark);
    tables.kinds.push_back(TokenKind::control);
  }
  tables.tokens.resize(V);
  tables.kinds.resize(V);
  if (V == 258) tables.eos = 257;
  return tables;
}

/// The file of a model whose V is at most 258. Throws as model_bytes does.
inline std::vector<std::uint8_t> gguf_file(const Config& config, const ModelWeights& weights) {
  return model_bytes(config, weights, tiny_tokenizer(config.V), "tiny, at random",
                     "<|im_start|>system\nYou are tiny.<|im_end|>\n<|im_start|>user …");
}

}  // namespace t2t
