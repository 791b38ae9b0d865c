// A tiny random model as a server has it, for tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "16_server/api/served_model.hpp"

namespace t2t {

/// Its tokenizer has a token for each byte, and the marks of ChatML, 256 and 257.
inline const std::vector<std::uint8_t>& tiny_file() {
  static const std::vector<std::uint8_t> bytes = [] {
    Random random(5);
    return gguf_file(tiny_config(), draw_model(tiny_config(), random));
  }();
  return bytes;
}

/// The bytes must outlive it.
inline Session tiny_session(const std::vector<std::uint8_t>& bytes = tiny_file()) {
  GgufFile file("tiny.gguf", bytes);
  Bpe bpe = read_tokenizer(file);
  return Session(std::move(file), std::move(bpe), packed_matrix);
}

}  // namespace t2t
