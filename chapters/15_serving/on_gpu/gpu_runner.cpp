#include "15_serving/on_gpu/gpu_runner.hpp"

#include <algorithm>
#include <memory>

#include "15_serving/on_gpu/device_pages.hpp"
#include "memory.hpp"
#include "shapes.hpp"

namespace t2t {

ModelRunner gpu_runner(const Model& model, const EngineOptions& options,
                       const UploadMatrices& upload) {
  const Config& config = model.config();
  expect(options.bits == 32, "bits of a key or value", "32, for bf16 on a GPU", options.bits);
  const std::size_t S = std::min(config.T_max, options.pages * options.page_size);
  StateOptions slots{.chunk = options.budget, .sequences = options.sequences};
  expect_state_options(config, S, slots);
  const auto pages = std::make_shared<DevicePages>(config, options, S);
  const auto device = std::make_shared<DeviceModel>(
      model, DeviceRoom{S, options.sequences, rows_of_a_pass(S, slots)}, pages->cache(), upload);
  expect_memory(double(options.swap) * double(pages->bytes_of_a_page()), "the copies of pages",
                "ask for fewer (--swap)");
  slots.pass = [device](const Model&, std::span<const MoreTokens> more,
                        std::span<const std::size_t> lengths,
                        Matrix logits) { device->run(more, lengths, logits); };
  const auto state = std::make_shared<ModelState>(config, S, std::move(slots));
  return {options,
          config.V,
          S,
          [&model, pages, state](std::span<const Chunk> chunks, Matrix logits) {
            run_chunks(model, *state, pages->tables, chunks, logits);
          },
          [pages](std::size_t page) { return pages->copy_of(page); },
          [pages](std::size_t page, std::span<const std::byte> copy) { pages->put(page, copy); }};
}

}  // namespace t2t
