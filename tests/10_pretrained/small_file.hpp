// A small GGUF file for the tests of reading one.
#pragma once

#include "10_pretrained/file/gguf_bytes.hpp"

namespace t2t {

/// A file with something of everything: all kinds of metadata, a tokenizer, tensors of three types.
inline std::vector<std::uint8_t> small_file() {
  GgufBytes file;
  file.header(3, 9);
  file.entry("general.architecture", "llama").entry("llama.block_count", 30u);
  file.entry("eps", 1e-5f).entry("flag", true);
  file.entry("tokenizer.ggml.model", "gpt2").entry("tokenizer.ggml.pre", "smollm");
  file.entry("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<|im_end|>"});
  file.entry("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 1, 3});
  file.entry("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  file.tensor("gain", {3}, 0, 0).tensor("w", {32, 2}, 3, 32).tensor("v", {2, 2}, 1, 96).pad();
  file.put(1.0f).put(2.0f).put(-3.0f).pad();
  file.raw(std::string(2 * 20, '\x11')).pad().raw(std::string(8, '\x22'));
  return file.bytes;
}

}  // namespace t2t
