// The solutions to the problems on paper of docs/21_pipeline.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "21_pipeline/stages/pipeline_costs.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution enough_micro_batches() {
  std::size_t parts = 1;
  while (idle_share(8, parts) > 0.1) ++parts;
  return {"a bubble of a tenth",
          fmt::format("7/(m + 7) is at most 1/10 from m = {} on. 1F1B then has 8 micro-batches in "
                      "flight on the first stage, and GPipe all {}.",
                      parts, parts)};
}

static Solution bytes_of_a_stage() {
  const Config whole = preset("llama2-7b");
  const Sent sent = neighbours_cost(whole, {1, 4}, 4096, 32);
  return {
      "bytes of a stage",
      fmt::format("A message has 4,096·4,096 floats. The stage sends 32 of them forward and 32 "
                  "backward: {} messages and {} bytes. Its gradient, sent once by data parallel "
                  "ranks, would be 8 blocks of 202,383,360 floats, or {} bytes, and an "
                  "all-reduce sends it almost twice.",
                  sent.messages, with_commas(sent.bytes), with_commas(8ull * 202'383'360 * 4))};
}

static Solution saved_activations() {
  const Config whole = preset("llama2-7b");
  const auto gb = [&](std::size_t stage, std::size_t in_flight) {
    return double(kept_cost(whole, {stage, 4}, 4096, in_flight)) / 1e9;
  };
  return {
      "saved activations",
      fmt::format("A token saves 46,592 floats in a block. With 8 blocks and 4,096 tokens, a "
                  "micro-batch is {:.2f} GB. Under 1F1B the first stage has 4 in flight, {:.1f} "
                  "GB, and the last one 1, {:.2f} GB with the head's gradient. Under GPipe all "
                  "32 are in flight everywhere: {:.0f} GB on the first stage.",
                  gb(0, 1), gb(0, 4), gb(3, 1), gb(0, 32))};
}

std::vector<Solution> solutions() {
  return {enough_micro_batches(), bytes_of_a_stage(), saved_activations()};
}

}  // namespace t2t
