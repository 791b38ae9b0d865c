// How a training is laid out on devices.
#pragma once

#include <cstddef>
#include <string>

namespace t2t {

/// What a rank of the data group stores of weights, gradients and optimizer: everything, its share
/// of the optimizer (ZeRO-1), or its share of all three (ZeRO-3, FSDP). Chapter 19 shows them.
enum class Sharding { none, optimizer, all };

/// The devices are t·c·p·d. Ranks of a tensor group are neighbours, then come those of a context
/// group, of a pipeline, and of a data group.
struct Layout {
  std::size_t t = 1;            // ranks of a tensor group
  std::size_t c = 1;            // ranks among which a sequence's tokens are divided
  std::size_t p = 1;            // stages of a pipeline
  std::size_t d = 1;            // data parallel ranks
  std::size_t e = 1;            // ranks of a data group among which experts are divided
  std::size_t micro_batch = 1;  // sequences that a data parallel rank computes at a time
  std::size_t chunks = 1;       // of a stage's blocks, which take turns: interleaved 1F1B
  Sharding sharding = Sharding::optimizer;
  bool recompute = false;  // the forward pass of a block, in its backward pass
};

/// What is trained in a step.
struct Job {
  std::size_t T;         // tokens of a sequence
  std::size_t B;         // sequences of a step
  bool causal = true;    // half of the attention scores are computed; if not, all
  bool overlaps = true;  // data parallel ranks send while they compute
};

inline std::size_t devices_of(const Layout& layout) {
  return layout.t * layout.c * layout.p * layout.d;
}

/// How many micro-batches a data parallel rank computes in a step. If B is not a multiple of the
/// sequences that all ranks compute at a time, some places of the last micro-batches stay empty,
/// and still take time.
inline std::size_t micro_batches(const Layout& layout, const Job& job) {
  const std::size_t at_a_time = layout.d * layout.micro_batch;
  return (job.B + at_a_time - 1) / at_a_time;
}

/// "tensor 8, pipeline 16, data 64, ZeRO-1, interleaved 2"
std::string layout_text(const Layout& layout);

}  // namespace t2t
