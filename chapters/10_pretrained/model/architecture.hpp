// Reads the architecture, the sizes and the choices of a model from its file, as a Config.
//
//             rows of q and k   additions
//   llama     in neighbours     scaled RoPE, where a file has rope_freqs.weight (Llama 3)
//   granite   in neighbours     factors of the embedding, of the sublayers, of the scores and of
//                               the logits
//   qwen2     in halves         biases of q, k and v
//   qwen3     in halves         a norm for each head of q and k
//   gemma2    in halves         norms before and after each sublayer, an FFN gated by GELU, an
//                               embedding times √C, capped scores and logits; of every two blocks
//                               the first sees a window
//   gemma3    in halves         as gemma2, with norms of heads in place of caps; of every six
//                               blocks five see a window and have another theta
//
// A file names its architecture under general.architecture, and its keys begin with that name:
// llama.block_count. Files of the llama architecture may hold mixtures of experts, which chapter 14
// computes; granitemoe, qwen2moe and qwen3moe always do. Scalings of RoPE other than Llama 3's and
// linear ones, and RoPE on only a part of each head, are refused, with the key or the tensor named.
#pragma once

#include <string>
#include <string_view>

#include "09_language_model/config.hpp"
#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// "llama.block_count" of "block_count". Throws std::runtime_error when the file names no
/// architecture that is read here.
std::string model_key(const GgufFile& file, std::string_view key);

/// The name of the architecture that has these choices: "qwen3". Throws std::invalid_argument when
/// no architecture has them.
std::string_view architecture_name(const BlockSettings& settings);

/// The sizes and choices in the metadata. Throws std::runtime_error, naming the file and the key,
/// for another architecture, for a value that is missing, out of range or not built here, and for
/// sizes that expect_config refuses.
Config read_config(const GgufFile& file);

/// The model's name in the file, for messages: general.name, or "without a name".
std::string model_name(const GgufFile& file);

}  // namespace t2t
