#include "15_serving/engine/model_runner.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "14_mixture_of_experts/model/mixture_network.hpp"
#include "15_serving/attention/paged_attention.hpp"
#include "memory.hpp"

namespace t2t {

void run_chunks(const Model& model, ModelState& state, std::span<std::vector<std::size_t>> tables,
                std::span<const Chunk> chunks, Matrix logits) {
  std::vector<MoreTokens> more;
  for (const Chunk& chunk : chunks) {
    tables[chunk.sequence].assign(chunk.table.begin(), chunk.table.end());
    set_length(state, chunk.position, chunk.sequence);
    more.push_back({chunk.sequence, chunk.ids, chunk.wanted});
  }
  forward(model, state, more, logits);
}

ModelRunner model_runner(const Model& model, const EngineOptions& options,
                         const StateOptions& slots) {
  const Config& config = model.config();
  const std::size_t S = std::min(config.T_max, options.pages * options.page_size);
  StateOptions state_options = slots;
  state_options.chunk = options.budget, state_options.sequences = options.sequences;
  if (config.block.experts > 0) state_options.network = experts_network();
  expect_state_options(config, S, state_options);
  const auto paged = std::make_shared<PagedAttention>(
      settings_of_all(config), S, std::min(options.budget, S), options.sequences, options.pages,
      options.page_size, options.bits);
  state_options.memory = {[paged](const Projected& in, Matrix heads, const Trace& trace) {
    (*paged)(in, heads, trace);
  }};
  const auto state = std::make_shared<ModelState>(config, S, std::move(state_options));
  expect_memory(double(options.swap) * paged->bytes_of_a_page(), "the copies of pages",
                "ask for fewer (--swap)");
  return {options,
          config.V,
          S,
          [&model, paged, state](std::span<const Chunk> chunks, Matrix logits) {
            run_chunks(model, *state, paged->tables, chunks, logits);
          },
          [paged](std::size_t page) { return paged->copy_of(page); },
          [paged](std::size_t page, std::span<const std::byte> copy) { paged->put(page, copy); }};
}

}  // namespace t2t
