// A LoRA adapter: fine-tuning's changes to some of a model's matrices, each as the product of two
// thin matrices. Chapter 13 trains adapters.
//
//   W ← W + (alpha / r) · B·A          A [r, in], B [out, r]
//
// In the file, beside the entries general.type "adapter", adapter.type "lora" and
// adapter.lora.alpha, A and B stand under the matrix's own name: blk.3.attn_q.weight.lora_a and
// .lora_b. llama.cpp reads the same files. Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large
// Language Models".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// The change of one matrix [out, in].
struct LowRank {
  std::string weight;  // its name in the model's file
  Tensor<2> a;         // [r, in]
  Tensor<2> b;         // [out, r]
};
struct Adapter {
  std::string architecture;  // of the model that it belongs to: "llama"
  float alpha;
  std::vector<LowRank> changes;
};

/// Throws std::runtime_error, naming the file and what is wrong: another type of file, an A without
/// its B, two ranks in one change, a rank of 0, no change at all, a number that is not finite, an
/// alpha of 0.
Adapter read_adapter(const GgufFile& file);
/// Writes a file that read_adapter reads. Throws as write_file does.
void save_adapter(const std::filesystem::path& path, const Adapter& adapter);

/// to = base + (alpha / r) · B·A. Throws std::invalid_argument when shapes disagree.
void add_change(const LowRank& change, float alpha, ConstMatrix base, Matrix to);

/// The model with the adapter's changes added to its matrices. Throws std::invalid_argument for an
/// adapter of another architecture, a matrix that the model does not have or that has another
/// shape, packed weights, and a change that is too large for floats.
Model with_adapter(Model model, const Adapter& adapter);

}  // namespace t2t
