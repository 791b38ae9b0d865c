// Small models for sharded training, and what a trainer's ranks hold together.
#pragma once

#include <algorithm>
#include <vector>

#include "13_training/shows/show_gradients.hpp"
#include "19_ranks/collectives/ring.hpp"
#include "19_ranks/sharded/fsdp_trainer.hpp"
#include "19_ranks/sharded/zero1_trainer.hpp"
#include "19_ranks/tiny_training.hpp"

namespace t2t::tiny_training {

/// Three blocks of LLaMA's kind with a tied table, and two of GPT-2's, with biases, learned
/// positions and a head of its own.
inline Config llama() { return small_config(8, 3, T); }
inline Config gpt2() {
  Config config = resized(preset("gpt2"), {.C = 12, .L = 2, .H = 2, .G = 2, .V = 256});
  config.T_max = T;
  config.tied = false;
  return config;
}

/// Whole tensors of the chunks that all ranks have, on every rank.
inline Floats whole_of(const Communicator& ranks, const std::vector<ListedTensor>& chunks) {
  Floats all;
  for (const ListedTensor& chunk : chunks) {
    Floats whole(chunk.info.size());
    std::ranges::copy(chunk.numbers, chunk_of(whole, ranks.size, ranks.rank).begin());
    ring_all_gather(ranks, whole);
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

inline Floats weights_of(const Communicator&, const DataTrainer& trainer) {
  return weights_of(trainer.model());
}
inline Floats weights_of(const Communicator&, const Zero1Trainer& trainer) {
  return weights_of(trainer.model());
}
inline Floats weights_of(const Communicator& ranks, const FsdpTrainer& trainer) {
  return whole_of(ranks, trainer.model().weights());
}

}  // namespace t2t::tiny_training
