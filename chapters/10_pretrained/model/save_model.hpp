// Writes a model as a GGUF file: the way back from load_model.hpp and tokenizer.hpp.
//
//   general.*, llama.*   the architecture, its sizes and choices
//   tokenizer.*          the tokens and merges, and a chat template
//   tensors              under the names that load_model.hpp reads
//
// Chapter 13 writes the models that it trains, which chapters 10 to 12 and llama.cpp then open.
// llama.cpp heeds no sliding window in these architectures, and a tokenizer without an eos gets its
// own default there, token 11.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/file/write_gguf.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

/// Writes the model and its tokenizer: read_model and read_tokenizer get the same Config, the same
/// bits and the same tables from the file. Tensors are written one after the other, so no second
/// copy of the weights is made; the file appears whole or not at all, as write_file says.
///
/// Throws std::invalid_argument, naming it, for a setting that the architectures of
/// architecture.hpp do not have or that the file can't express (scaled frequencies, layers that
/// differ), for a size above the largest int, for weights that do not fit the Config or are packed,
/// and for a tokenizer without V tokens. Throws std::runtime_error as Bpe and write_file do, and
/// for texts that are not UTF-8.
void save_model(const std::filesystem::path& path, const Config& config,
                const ModelWeights& weights, const BpeTables& tokenizer, std::string_view name,
                std::string_view chat_template = {});  // empty: the file has none

/// The file's bytes in memory, for small models. Throws as save_model does.
std::vector<std::uint8_t> model_bytes(const Config& config, const ModelWeights& weights,
                                      const BpeTables& tokenizer, std::string_view name,
                                      std::string_view chat_template = {});

/// A model's tensors, as a file has them, in the order of tensor_names. The elements stay where
/// they are. Throws std::invalid_argument when some are packed.
std::vector<StoredTensor> stored_tensors(const ModelWeights& weights, const Config& config);

}  // namespace t2t
