// The solutions to the problems on paper of docs/20_split_models.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "20_split_models/tensor_parallel/parallel_state.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution bytes_of_a_token() {
  const Config whole = preset("llama2-7b");
  const PassCost cost = pass_cost(whole, 1, 1, 4, 0);
  const Sent sums = cost.embedding + cost.attention + cost.feed_forward;
  return {"a token of LLaMA-2-7B",
          fmt::format("There are 2·32 + 1 = 65 all-reduces of 4,096 floats. In each, a rank sends "
                      "2·3/4·4,096·4 = 24,576 bytes in 6 messages: together {} bytes in {} "
                      "messages. The logits add 3/4·32,000·4 = {} bytes in {}.",
                      with_commas(sums.bytes), sums.messages, with_commas(cost.logits.bytes),
                      cost.logits.messages)};
}

static Solution slowest_link() {
  const PassCost cost = pass_cost(preset("smollm2-135m"), 1, 1, 2, 0);
  const double saved = 7e-3 / 2, messages = double(cost.together().messages);
  return {
      "the slowest link",
      fmt::format("Two ranks save at most 3.5 ms of computation. A token costs 2·(2·30 + 1) + 1 "
                  "= {} messages one after another, and if bytes cost nothing, each may take "
                  "3.5 ms/{} = {:.1f} us.",
                  messages, messages, 1e6 * saved / messages)};
}

static Solution why_columns() {
  return {
      "rows twice",
      "With rows of w_down, a rank makes C/p of the sublayer's outputs, for which it needs all F "
      "hidden channels. They have to be gathered first, (p − 1)/p·F floats, and the outputs "
      "after it, (p − 1)/p·C: with F = 8/3·C that is 11/3·(p − 1)/p·C floats in place of "
      "2·(p − 1)/p·C."};
}

std::vector<Solution> solutions() { return {bytes_of_a_token(), slowest_link(), why_columns()}; }

}  // namespace t2t
