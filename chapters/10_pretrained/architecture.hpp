// What a file says of its model: its architecture, and with that its sizes and choices, as a
// Config.
//
//            rows of q and k    what it has more
//   llama    in neighbours      scaled RoPE, where a file has rope_freqs.weight (Llama 3)
//   qwen2    in halves          biases of q, k and v
//   qwen3    in halves          a norm for each head of q and k
//
// A file names its architecture under general.architecture, and its keys begin with that name:
// llama.block_count. Refused, with the key or the tensor named: other scalings of RoPE, RoPE on a
// part of a head, and mixtures of experts. Windows on some layers only are not built.
#pragma once

#include <string>
#include <string_view>

#include "09_language_model/config.hpp"
#include "10_pretrained/gguf.hpp"

namespace t2t {

/// "llama.block_count" of "block_count". Throws std::runtime_error when the file names no
/// architecture that is read here.
std::string model_key(const GgufFile& file, std::string_view key);

/// The architecture whose choices these are: "qwen3". Throws std::invalid_argument when there is
/// none.
std::string_view architecture_name(const BlockSettings& settings);

/// The sizes and choices that the metadata tells. Throws std::runtime_error, naming the file and
/// the key, for another architecture and for what is missing, out of range or not built here, and
/// for sizes of which expect_config makes no model.
Config read_config(const GgufFile& file);

/// What the file calls its model, for messages: general.name, or "without a name".
std::string model_name(const GgufFile& file);

}  // namespace t2t
