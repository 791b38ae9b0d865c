// Loads a GGUF file's tensors into the model of chapter 09, of the Config that architecture.hpp
// reads.
//
//   blk.3.attn_q.weight  →  blocks[3].w_q        output.weight, or else token_embd.weight  →  head
//
// Missing and surplus tensors are refused by name, and all shapes are checked before the first
// weight is read.
#pragma once

#include <functional>
#include <string>

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/model/architecture.hpp"
#include "10_pretrained/model/shard.hpp"

namespace t2t {

/// A tensor's name in GGUF files: "blk.3.attn_q.weight". Throws std::invalid_argument when no
/// architecture that is read here has such a tensor.
std::string name_in_file(const TensorInfo& info);

/// One tensor's name in the file, the shape that it must have, and what it is for.
struct NamedShape {
  std::string name;
  std::vector<std::size_t> shape;
  Role role;
};
/// All tensors of a model of this Config, in the order of chapter 09's ModelWeights.
std::vector<NamedShape> tensor_names(const Config& config);

/// Throws std::runtime_error, naming the file and the tensors that are missing or surplus, or the
/// tensor that has another shape.
void expect_tensors(const GgufFile& file, const Config& config);

/// Makes a Weight from a matrix in the file: chapter 12 keeps the stored bits instead of floats.
/// The matrix is [info.rows, info.cols]; tensor.bytes are valid during the call.
using MakeWeight = std::function<Weight(const GgufTensor& tensor, const TensorInfo& info)>;

/// All weights of a model of this Config, or one rank's shard of them, of which only its own bytes
/// are read; matrices become floats unless make is given. Throws as expect_tensors and shard_of do.
ModelWeights read_weights(const GgufFile& file, const Config& config, const MakeWeight& make = {},
                          Shard shard = {});

/// Config and weights: a model ready to run. Throws as read_config, read_weights and Model do.
Model read_model(const GgufFile& file, const MakeWeight& make = {});

}  // namespace t2t
