// A long prompt over several ranks: each has the whole model and a share of the tokens.
//
//   own ids → embedding → the blocks, whose attention passes keys and values on a ring → the last
//   token's logits, from the rank that has it
//
// Nothing but attention looks at other tokens, so that nothing else sends a message.
#pragma once

#include <cstddef>
#include <span>

#include "09_language_model/fast/model.hpp"
#include "19_ranks/counting/counts.hpp"
#include "20_split_models/context_parallel/context_attention.hpp"

namespace t2t {

class ContextPrefill {
 public:
  /// For T tokens; the model must outlive it. Throws as ContextAttention and BlockScratch do, and
  /// std::invalid_argument for a T above T_max.
  ContextPrefill(const Communicator& ranks, const Model& model, std::size_t T);

  /// Writes the logits of the last token, the same on each rank. All ranks must call it. Throws
  /// std::invalid_argument for another number of ids and as embed_tokens does, and as messages.hpp
  /// says.
  void logits_of_last(std::span<const int> ids,  // [T], of the whole sequence
                      Row logits);               // [V]

  /// Of everything that it has allocated: what a rank needs beside the weights.
  std::size_t bytes() const;

 private:
  Communicator ranks_;
  const Model& model_;
  std::size_t T_;
  ContextAttention attention_;
  BlockScratch scratch_;
  Tensor<2> x_;  // [own tokens, C]
};

/// The same by formula, and what a rank sends in a call.
std::size_t context_prefill_bytes(const Config& config, std::size_t T, std::size_t size,
                                  std::size_t rank);
Sent context_prefill_cost(const Config& config, std::size_t T, std::size_t size, std::size_t rank);

}  // namespace t2t
