// A model's keys and values in pages on a device, in bf16: a DeviceCache that takes the place of
// the device model's own.
//
// A batch (chapter 11's model calls it a chunk) has rows of several sequences. A sequence with one
// row decodes, by decode_pages.cu, and one with several rows reads a prompt, by prompt_pages.cu: at
// most two launches for each layer, however many sequences there are. Before them, lists of the
// batch are copied to the device: where each new key goes, the tables, and how the sequences are
// divided among thread blocks. A batch in which all sequences decode, with as many rows, logits,
// stretches and blocks as the one before it, makes the same kernel launches; these are recorded as
// a CUDA graph and replayed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "11_flash_attention/kernels/model/device_model.hpp"
#include "15_serving/attention/paged_attention.hpp"
#include "15_serving/engine/model_runner.hpp"
#include "15_serving/kernels/page_copies.hpp"
#include "15_serving/kernels/prompts.hpp"
#include "15_serving/on_gpu/fixed_lists.hpp"

namespace t2t {

class DevicePages {
 public:
  /// Makes the pages that the options ask for, for sequences of up to S tokens. Throws
  /// std::invalid_argument when the pages of a layer have 2^31 positions or more;
  /// std::runtime_error when the device has too little memory.
  DevicePages(const Config& config, const EngineOptions& options, std::size_t S);
  DevicePages(const DevicePages&) = delete;  // what cache() returns refers to it

  std::vector<PageTable> tables;  // [sequences]

  /// For a DeviceModel, which this must outlive. Its run throws std::invalid_argument as
  /// plan_sequences and plan_prompts do, before anything is launched.
  DeviceCache cache();

  /// A page's keys of all layers, then its values. Throw std::invalid_argument for a page that is
  /// not there, and for a copy of another size.
  PageCopy copy_of(std::size_t page);
  void put(std::size_t page, std::span<const std::byte> copy);
  std::size_t bytes_of_a_page() const { return 2 * packed_.size() * sizeof(bf16); }

  /// Bytes of the last batch's lists.
  std::size_t bytes_of_lists() const { return lists_.bytes(); }

 private:
  /// What is the same whenever a recorded batch is replayed.
  struct Shape {
    std::size_t rows, wanted;
    int stretches, blocks;
    bool operator==(const Shape&) const = default;
  };
  void prepare(const PlannedRows& rows);
  void set_places(const PlannedRows& rows);  // where each row's key and value are written
  void set_decodes(std::span<const PageTable> of, std::span<const int> lengths,
                   std::span<const int> rows, std::vector<int>& in_all);
  void set_prompts(std::span<const PageTable> of, std::span<const PromptRows> rows,
                   std::vector<int>& in_all);
  void run(const PlannedRows& rows, const std::function<void()>& launch);
  void attend(std::size_t l, const bf16* q, bf16* heads);
  PageStore store(DeviceBuffer<bf16>& rows) const;

  BlockSettings s_;
  std::size_t L_;
  int pages_, page_size_;
  DeviceBuffer<bf16> keys_, values_;  // [L, G, pages, page_size, D]
  DeviceBuffer<bf16> packed_;         // [L, G, page_size, D], on the way to a copy and back
  DecodeScratch scratch_;             // of decode_pages.cu
  int slots_;                         // its blocks that the GPU runs at once
  FixedLists lists_;
  SequencesOnDevice decodes_ = {};  // of this batch; B = 0: none
  PromptsOnDevice prompts_ = {};    // of this batch; count = 0: none
  std::optional<Shape> last_;       // of the last batch, if it may be replayed
  std::optional<Graph> recorded_;   // of a batch of that shape
};

}  // namespace t2t
