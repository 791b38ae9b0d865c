// A model as the bytes of a GGUF file, with a tokenizer that has a token for each byte and nothing
// merged: for tests, and for a program whose real weights are missing.
#pragma once

#include <string>
#include <vector>

#include "10_pretrained/byte_alphabet.hpp"
#include "10_pretrained/gguf_bytes.hpp"
#include "10_pretrained/load_model.hpp"

namespace t2t {

/// One small enough to draw in no time. V: 256 bytes and the two marks of ChatML.
inline Config tiny_config() {
  return {.C = 64, .L = 2, .H = 4, .G = 2, .D = 16, .F = 96, .V = 258, .T_max = 256};
}

inline void put_tokenizer(GgufBytes& file) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds(256, 1);
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(to_byte_alphabet(std::string(1, char(byte))));
  for (const char* mark : {"<|im_start|>", "<|im_end|>"}) {
    tokens.push_back(mark);
    kinds.push_back(3);
  }
  file.entry("tokenizer.ggml.model", "gpt2").entry("tokenizer.ggml.pre", "smollm");
  file.entry("tokenizer.ggml.tokens", tokens).entry("tokenizer.ggml.token_type", kinds);
  file.entry("tokenizer.ggml.merges", std::vector<std::string>());
  file.entry("tokenizer.ggml.eos_token_id", 257u);
  file.entry("tokenizer.chat_template",
             "<|im_start|>system\nYou are tiny.<|im_end|>\n<|im_start|>user …");
}

/// A model's tensors in the order of tensor_names.
inline std::vector<ConstRow> values_of(const ModelWeights& weights) {
  const auto all = [](const auto& x) { return ConstRow(x.data(), x.size()); };
  std::vector<ConstRow> values = {all(weights.embedding)};
  for (const BlockWeights& block : weights.blocks)
    for (const ConstRow row :
         {all(block.attention_norm.gain), all(block.w_q), all(block.w_k), all(block.w_v),
          all(block.w_o), all(block.feed_forward_norm.gain), all(block.feed_forward.w_gate),
          all(block.feed_forward.w_up), all(block.feed_forward.w_down)})
      values.push_back(row);
  values.push_back(all(weights.final_norm.gain));
  if (weights.head.size() > 0) values.push_back(all(weights.head));
  return values;
}

/// As F32. The tokenizer comes with a V of 258 only.
inline std::vector<std::uint8_t> gguf_file(const Config& config, const ModelWeights& weights) {
  const std::vector<NamedShape> names = tensor_names(config);
  const std::vector<ConstRow> values = values_of(weights);
  const bool speaks = config.V == 258;
  GgufBytes file;
  file.header(names.size(), speaks ? 18 : 11);
  file.entry("general.architecture", "llama").entry("general.name", "tiny, at random");
  const auto size = [&](const char* key, std::size_t n) { file.entry(key, std::uint32_t(n)); };
  size("llama.embedding_length", config.C), size("llama.block_count", config.L);
  size("llama.attention.head_count", config.H), size("llama.attention.head_count_kv", config.G);
  size("llama.attention.key_length", config.D), size("llama.feed_forward_length", config.F);
  size("llama.context_length", config.T_max);
  file.entry("llama.rope.freq_base", config.theta);
  file.entry("llama.attention.layer_norm_rms_epsilon", config.eps);
  if (speaks) put_tokenizer(file);

  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    file.tensor(names[i].name, {names[i].shape.rbegin(), names[i].shape.rend()}, 0, offset);
    offset += (values[i].size_bytes() + 31) / 32 * 32;
  }
  for (const ConstRow row : values)
    file.pad().raw({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
  file.pad();
  return file.bytes;
}

}  // namespace t2t
