// What reads tokens into pages and says what comes next: a model, or something simpler whose
// answers can be checked.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "tensor.hpp"

namespace t2t {

/// More tokens of one sequence.
struct Chunk {
  std::size_t slot;                    // the sequence's slot among those that run
  std::size_t position;                // of the first of the tokens
  std::span<const int> ids;            // at least one
  std::span<const std::size_t> table;  // pages of all positions up to the last of them
  std::size_t wanted;                  // how many of the last ids want logits
};

/// Sizes of the memory that sequences share.
struct PageSizes {
  std::size_t pages = 256;
  std::size_t page = 16;       // tokens of a page
  std::size_t sequences = 16;  // that run at the same time
  std::size_t budget = 128;    // tokens of a step
  /// How many tokens of prompts a step reads at most in which sequences are answered. But each step
  /// has room for `sequences` tokens. 0: as many as the budget allows.
  std::size_t chunk = 0;
  std::size_t bits = 32;  // of a key or value: 32 (a float), 8 or 4
  std::size_t swap =
      0;  // pages of preempted sequences that are kept as copies in other memory, at most

  /// How many pages so many tokens need.
  std::size_t pages_for(std::size_t tokens) const { return (tokens + page - 1) / page; }
};

/// What is in a page, in all layers.
using PageCopy = std::vector<std::byte>;

struct PageReader {
  PageSizes sizes;        // of its memory
  std::size_t V;          // numbers in a row of logits
  std::size_t positions;  // that a sequence can have at most
  /// Reads all chunks at once; writes the rows of logits that they want, in their order.
  std::function<void(std::span<const Chunk> chunks, Matrix logits)> read;
  /// A copy of what is in a page. This and put may be left out if sizes.sequences is 1.
  std::function<PageCopy(std::size_t page)> copy_of = {};
  /// Writes into a page what copy_of returned, for this page or another one.
  std::function<void(std::size_t page, std::span<const std::byte> copy)> put = {};
};

/// A model whose keys and values lie in pages. The model must outlive it. Throws as ModelState and
/// PagedAttention do.
PageReader model_reader(const Model& model, const PageSizes& sizes);

}  // namespace t2t
