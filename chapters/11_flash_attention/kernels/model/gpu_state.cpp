#include "11_flash_attention/kernels/model/gpu_state.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

#include "11_flash_attention/kernels/best_rung.hpp"
#include "11_flash_attention/kernels/model/device_model.hpp"
#include "cuda/device.hpp"

namespace t2t {

ModelState gpu_state(const Model& model, std::size_t S, StateOptions options,
                     const UploadMatrices& upload) {
  expect_state_options(model.config(), S, options);
  const auto device = std::make_shared<DeviceModel>(
      model, DeviceRoom{S, options.sequences, rows_of_a_pass(S, options)}, DeviceCache{}, upload);
  // A Model's blocks stay where they are when it is moved.
  options.pass = [device, blocks = model.weights().blocks.data()](
                     const Model& of, std::span<const MoreTokens> more,
                     std::span<const std::size_t> lengths, Matrix logits) {
    if (of.weights().blocks.data() != blocks)
      throw std::invalid_argument(
          "model: wanted the one whose weights are on the device, got another");
    device->run(more, lengths, logits);
  };
  return ModelState(model.config(), S, std::move(options));
}

MakeState gpu_states(const UploadMatrices& upload) {
  return {.make =
              [upload](const Model& model, std::size_t S, StateOptions options) {
                fmt::print(stderr, "{}\n", best_rung_text(compute_capability()));
                return gpu_state(model, S, std::move(options), upload);
              },
          .bytes_per_element = sizeof(bf16),
          .on_cpu = false};
}

}  // namespace t2t
