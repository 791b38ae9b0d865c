// A GGUF file's tensors as the model of chapter 09, made as architecture.hpp reads it.
//
//   blk.3.attn_q.weight  →  blocks[3].w_q        output.weight, or else token_embd.weight  →  head
//
// What is missing or surplus is refused by name rather than ignored, and every shape is checked
// before the first number is read.
#pragma once

#include <functional>
#include <string>

#include "09_language_model/model.hpp"
#include "10_pretrained/architecture.hpp"

namespace t2t {

/// One tensor's name in the file, and the shape that it must have.
struct NamedShape {
  std::string name;
  std::vector<std::size_t> shape;
};
/// All that a model of this Config is made of, in the order of the diagram.
std::vector<NamedShape> tensor_names(const Config& config);

/// Throws std::runtime_error, naming the file and the tensors that are missing or surplus, or the
/// one of another shape.
void expect_tensors(const GgufFile& file, const Config& config);

/// What to make of a matrix of the file: floats unless the caller says otherwise (chapter 12 keeps
/// the file's few bits). It has info.rows and info.cols, whatever the file writes of the shape;
/// tensor.bytes last as long as the file is open.
using MakeWeight = std::function<Weight(const GgufTensor& tensor, const TensorInfo& info)>;

/// All weights. Throws as expect_tensors does.
ModelWeights read_weights(const GgufFile& file, const Config& config, const MakeWeight& make = {});

/// Both: a model ready to run. Throws as read_config, read_weights and Model do.
Model read_model(const GgufFile& file, const MakeWeight& make = {});

}  // namespace t2t
