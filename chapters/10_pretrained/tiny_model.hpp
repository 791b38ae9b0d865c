// A small random model as the bytes of a GGUF file. Its tokenizer has a token for each byte and no
// merges. For tests, and for the program when the real weights are missing.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "10_pretrained/byte_alphabet.hpp"
#include "10_pretrained/gguf_bytes.hpp"
#include "10_pretrained/load_model.hpp"

namespace t2t {

/// Small sizes. V: a token for each of 256 bytes and the two marks of ChatML.
inline Config tiny_config() {
  return {.block = llama_style(64, 4, 2, 96), .L = 2, .V = 258, .T_max = 256};
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

/// The values of a model's tensors, in the order of tensor_names.
inline std::vector<ConstRow> values_of(const ModelWeights& weights, const Config& config) {
  std::vector<ConstRow> values;
  for_each_tensor(weights, config, [&]<class T>(const TensorInfo& info, const T& tensor) {
    if (info.size() == 0) return;
    if constexpr (std::is_same_v<T, Weight>)
      values.emplace_back(tensor.floats().data(), tensor.size());
    else
      values.push_back(row(tensor));
  });
  return values;
}

/// The file, with all tensors as F32, and with a tokenizer if V is 258.
inline std::vector<std::uint8_t> gguf_file(const Config& config, const ModelWeights& weights) {
  const std::vector<NamedShape> names = tensor_names(config);
  const std::vector<ConstRow> values = values_of(weights, config);
  const bool speaks = config.V == 258;
  GgufBytes file;
  file.header(names.size(), speaks ? 18 : 11);
  const BlockSettings& block = config.block;
  const std::string architecture(architecture_name(block));
  const auto key = [&](const char* name) { return architecture + "." + name; };
  const auto size = [&](const char* name, std::size_t n) {
    file.entry(key(name), std::uint32_t(n));
  };
  file.entry("general.architecture", architecture).entry("general.name", "tiny, at random");
  size("embedding_length", block.C), size("block_count", config.L);
  size("attention.head_count", block.H), size("attention.head_count_kv", block.G);
  size("attention.key_length", block.D), size("feed_forward_length", block.F);
  size("context_length", config.T_max);
  file.entry(key("rope.freq_base"), block.theta);
  file.entry(key("attention.layer_norm_rms_epsilon"), block.eps);
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
