#include "15_serving/engine/page_reader.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "14_mixture_of_experts/mixture_network.hpp"
#include "15_serving/attention/paged_attention.hpp"
#include "memory.hpp"

namespace t2t {

PageReader model_reader(const Model& model, const PageSizes& sizes) {
  std::shared_ptr<PagedAttention> paged;
  StateOptions options{.chunk = sizes.budget, .texts = sizes.texts};
  options.attention = [&](std::span<const BlockSettings> layers, std::size_t S, std::size_t T_max,
                          std::size_t texts) -> TextMemory {
    paged = std::make_shared<PagedAttention>(layers, S, T_max, texts, sizes.pages, sizes.page,
                                             sizes.bits);
    return {[paged](const Projected& in, Matrix heads, const Trace& trace) {
      (*paged)(in, heads, trace);
    }};
  };
  if (model.config().block.experts > 0) options.network = experts_network();
  const std::size_t S = std::min(model.config().T_max, sizes.pages * sizes.page);
  const auto state = std::make_shared<ModelState>(model.config(), S, std::move(options));
  state->options.attention = {};  // it refers to what is here
  expect_memory(double(sizes.swap) * paged->bytes_of_a_page(), "the copies of pages",
                "ask for fewer (--swap)");
  return {sizes,
          model.config().V,
          S,
          [&model, paged, state](std::span<const Chunk> chunks, Matrix logits) {
            std::vector<MoreTokens> more;
            for (const Chunk& chunk : chunks) {
              paged->tables[chunk.slot].assign(chunk.table.begin(), chunk.table.end());
              state->lengths[chunk.slot] = chunk.position;
              more.push_back({chunk.slot, chunk.ids, chunk.wanted});
            }
            forward(model, *state, more, logits);
          },
          [paged](std::size_t page) { return paged->copy_of(page); },
          [paged](std::size_t page, std::span<const std::byte> copy) { paged->put(page, copy); }};
}

}  // namespace t2t
