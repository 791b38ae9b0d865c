#include "12_quantization/kernels/stored_matrices.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "11_flash_attention/kernels/model/device_weights.hpp"
#include "12_quantization/kernels/packed_kernels.hpp"
#include "12_quantization/kernels/stored_weight.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "cuda/device.hpp"
#include "memory.hpp"

namespace t2t {

/// Matrices of one width, one after the other: packed in one form, or bf16. The other buffer is
/// empty.
struct RowsOnDevice {
  std::optional<DeviceForm> form;  // of the packed ones
  DeviceBuffer<std::uint8_t> packed;
  DeviceBuffer<bf16> numbers;

  PackedOnDevice stored() const { return {*form, packed.data()}; }
  std::size_t bytes() const { return packed.size() + numbers.size() * sizeof(bf16); }
};

/// The form that all of them are stored in. If not all are, or if a group of 16 rows would hold
/// rows of two matrices, there is none.
static std::optional<DeviceForm> common_form(std::initializer_list<const Weight*> matrices) {
  std::optional<DeviceForm> form;
  for (const Weight* matrix : matrices) {
    const std::optional<StoredRows> stored = stored_rows(*matrix);
    if (!stored || (form && stored->form != *form)) return std::nullopt;
    if (matrices.size() > 1 && matrix->rows() % rows_of_group != 0) return std::nullopt;
    form = stored->form;
  }
  return form;
}

static RowsOnDevice upload_in(std::optional<DeviceForm> form,
                              std::initializer_list<const Weight*> matrices) {
  if (!form) return {form, DeviceBuffer<std::uint8_t>(0), uploaded_in_bf16(matrices)};
  std::vector<std::uint8_t> all;
  for (const Weight* matrix : matrices) {
    const std::span<const std::uint8_t> bytes = stored_rows(*matrix)->bytes;
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return {form, DeviceBuffer<std::uint8_t>(std::span<const std::uint8_t>(all)),
          DeviceBuffer<bf16>(0)};
}
static RowsOnDevice upload(std::initializer_list<const Weight*> matrices) {
  return upload_in(common_form(matrices), matrices);
}

/// In the order of use.
struct StoredLayer {
  RowsOnDevice w_qkv;         // [(H + 2·G)·D, C]
  RowsOnDevice w_o;           // [C, H·D]
  RowsOnDevice w_gate, w_up;  // [F, C], of one form
  RowsOnDevice w_down;        // [C, F]
};
struct StoredModel {
  RowsOnDevice embedding;           // [V, C]
  std::vector<StoredLayer> layers;  // L
  RowsOnDevice own_head;            // [V, C], empty when tied

  const RowsOnDevice& head() const { return own_head.bytes() > 0 ? own_head : embedding; }
  std::size_t bytes() const {
    std::size_t sum = embedding.bytes() + own_head.bytes();
    for (const StoredLayer& w : layers)
      sum += w.w_qkv.bytes() + w.w_o.bytes() + w.w_gate.bytes() + w.w_up.bytes() + w.w_down.bytes();
    return sum;
  }
};

static StoredModel upload_all(const Model& model) {
  const ModelWeights& w = model.weights();
  std::vector<StoredLayer> layers;
  for (const BlockWeights& block : w.blocks) {
    const Weight &gate = block.feed_forward.w_gate, &up = block.feed_forward.w_up;
    const std::optional<DeviceForm> of_pair =
        common_form({&gate}) == common_form({&up}) ? common_form({&gate}) : std::nullopt;
    layers.push_back({upload({&block.w_q, &block.w_k, &block.w_v}), upload({&block.w_o}),
                      upload_in(of_pair, {&gate}), upload_in(of_pair, {&up}),
                      upload({&block.feed_forward.w_down})});
  }
  const bool tied = w.head.size() == 0;
  return {upload({&w.embedding}), std::move(layers),
          tied ? upload_in(std::nullopt, {}) : upload({&w.head})};
}

/// The functions of packed_kernels.hpp and of model_kernels.hpp, whichever the weights need.
static void store(const NormedRows& x, const RowsOnDevice& w, int T, int in, int out, float* y) {
  if (w.form) return launch_packed_store(x, w.stored(), T, in, out, y);
  launch_store_product(x, w.numbers.data(), T, in, out, y);
}
static void add(const bf16* x, const RowsOnDevice& w, int T, int in, int out, float* y) {
  if (w.form) return launch_packed_add(x, w.stored(), T, in, out, y);
  launch_add_product(x, w.numbers.data(), T, in, out, y);
}
static void swiglu(const NormedRows& x, const RowsOnDevice& w_gate, const RowsOnDevice& w_up, int T,
                   int in, int out, bf16* y) {
  if (w_gate.form) return launch_packed_swiglu(x, w_gate.stored(), w_up.stored(), T, in, out, y);
  launch_swiglu_product(x, w_gate.numbers.data(), w_up.numbers.data(), T, in, out, y);
}

DeviceMatrices stored_matrices(const Model& model) {
  const auto all = std::make_shared<const StoredModel>(upload_all(model));
  const BlockSettings& s = model.config().block;
  const int C = int(s.C), F = int(s.F), V = int(model.config().V);
  const int of_heads = int(s.H * s.D), of_qkv = int((s.H + 2 * s.G) * s.D);
  return {.embed =
              [=](const int* ids, int T, float* x) {
                const RowsOnDevice& table = all->embedding;
                if (table.form) return launch_packed_embed(table.stored(), ids, T, C, x);
                launch_embed(table.numbers.data(), ids, T, C, x);
              },
          .project = [=](std::size_t l, const NormedRows& x, int T,
                         float* qkv) { store(x, all->layers[l].w_qkv, T, C, of_qkv, qkv); },
          .add_heads = [=](std::size_t l, const bf16* heads, int T,
                           float* x) { add(heads, all->layers[l].w_o, T, of_heads, C, x); },
          .gate_and_up =
              [=](std::size_t l, const NormedRows& x, int T, bf16* hidden) {
                swiglu(x, all->layers[l].w_gate, all->layers[l].w_up, T, C, F, hidden);
              },
          .add_hidden = [=](std::size_t l, const bf16* hidden, int T,
                            float* x) { add(hidden, all->layers[l].w_down, T, F, C, x); },
          .score = [=](const NormedRows& x, int T,
                       float* logits) { store(x, all->head(), T, C, V, logits); },
          .bytes = all->bytes()};
}

std::string size_on_device(const DeviceMatrices& matrices, const Model& model) {
  std::size_t weights = 0;
  for_each_tensor(model.weights(), model.config(), [&](const TensorInfo& info, const auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), const Weight&>) weights += info.size();
  });
  return fmt::format("{} of weights on the GPU, of {} in bf16", bytes_text(double(matrices.bytes)),
                     bytes_text(2.0 * double(weights)));
}

}  // namespace t2t
