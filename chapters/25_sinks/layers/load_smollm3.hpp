// SmolLM3 from its GGUF file: LLaMA's blocks, of which every fourth has no RoPE. The file's tensors
// are those of chapter 10's llama files, with q's and k's rows in the order of neighbours in all
// layers. No key of the file says which layers have no RoPE; programs know the step of 4.
#pragma once

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// Whether general.architecture is smollm3.
bool is_smollm3(const GgufFile& file);

/// The sizes and choices in the metadata. Throws std::runtime_error, naming the file and the key,
/// for another architecture, and for a value that is missing, out of range or not built here: a
/// scaling of RoPE, or RoPE on a part of each head.
Config read_smollm3_config(const GgufFile& file);

/// Config and weights, as floats. Throws as read_smollm3_config and chapter 10's read_weights do.
Model read_smollm3(const GgufFile& file);

}  // namespace t2t
