// What must be true of a whole model whose packed weights are on a device; run on the stand-in, and
// on a GPU where one is.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "09_language_model/language_model.hpp"
#include "11_flash_attention/device_models.hpp"
#include "11_flash_attention/kernels/model/gpu_state.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/kernels/stored_matrices.hpp"
#include "12_quantization/kernels/stored_weight.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/hashed_weights.hpp"
#include "support/kernels/device_numbers.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::stored_model_test {

static Config config_of(bool tied) {
  Config config{
      .block = {.C = 96, .H = 3, .G = 1, .D = 64, .F = 160}, .L = 2, .V = 101, .T_max = 80};
  config.block.pairing = tied ? Pairing::halves : Pairing::neighbours, config.tied = tied;
  return config;
}

/// A model of packed matrices, and the same model in floats.
struct BothModels {
  Model stored, floats;
};

/// Each matrix has the type that type_of says; those of F32 are numbers that a bf16 holds.
template <class TypeOf>
static BothModels models_of(const Config& config, const TypeOf& type_of) {
  ModelWeights stored = room_for(config), floats = room_for(config);
  for_each_tensor(floats, config, [](const TensorInfo& info, auto& tensor) {
    fill_numbers(info, info.layer ? 100 * std::uint32_t(*info.layer + 1) : 0, tensor);
  });
  for_each_tensor(stored, config, [](const TensorInfo& info, auto& tensor) {
    fill_numbers(info, info.layer ? 100 * std::uint32_t(*info.layer + 1) : 0, tensor);
  });
  const auto pack = [&](const TensorInfo& info, Weight& tensor) {
    const Tensor<2> all = tensor.floats();
    const TensorType type = type_of(info);
    if (type == TensorType::f32) {
      tensor = Weight(rounded(all));
      return;
    }
    tensor = stored_weight(pack_rows(type, quantize_rows(type, all), all.shape(0), all.shape(1)));
  };
  for_each_tensor(stored, config, [&](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0) pack(info, tensor);
  });
  for_each_tensor(floats, config, [&](const TensorInfo& info, auto& tensor) {
    if constexpr (std::is_same_v<decltype(tensor), Weight&>)
      if (info.size() > 0) {
        Weight packed = tensor;
        pack(info, packed);
        Tensor<2> room;
        tensor = Weight(Tensor<2>(floats_of(packed, room)));
      }
  });
  return {Model(config, std::move(stored)), Model(config, std::move(floats))};
}

static Ids some_ids(std::size_t count) {
  Ids ids;
  for (std::size_t t = 0; t < count; ++t) ids.push_back(int(t * t * 7 + t * 13 + 1) % 101);
  return ids;
}

static ModelState stored_state(const Model& model, std::size_t S) {
  return gpu_state(model, S, {}, stored_matrices);
}

static void agrees_with_the_formula(const BothModels& both, const Ids& ids) {
  const Tensor<2> want = language_model(ids, both.floats);
  const double within = device_models::bound_with_packed_weights(both.floats, want);
  ModelState state = stored_state(both.stored, 40);
  Tensor<2> logits = empty(ids.size(), both.floats.config().V);
  forward_all(both.stored, state, ids, logits);
  CHECK(all_close(logits, want, within));
  reset(state);
  for (std::size_t t = 0; t < ids.size(); ++t)
    forward(both.stored, state, std::span(ids).subspan(t, 1), row(logits, t));
  CHECK(all_close(logits, want, within));
}

TEST_CASE(
    "a model with packed weights on the device agrees with the formula of the unpacked ones") {
  for (const TensorType type : {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1}) {
    CAPTURE(type_name(type));
    const bool tied = type == TensorType::q4_1;
    agrees_with_the_formula(models_of(config_of(tied), [&](const TensorInfo&) { return type; }),
                            some_ids(6));
  }
}

TEST_CASE("matrices of several types: what one kernel multiplies becomes bf16 where they differ") {
  const auto mixed = [](const TensorInfo& info) {
    const std::string name(info.name);
    if (name == "w_k" || name == "w_up") return TensorType::q8_0;
    if (name == "w_o" || name == "head") return TensorType::f32;
    return TensorType::q4_0;
  };
  const BothModels both = models_of(config_of(false), mixed);
  agrees_with_the_formula(both, some_ids(5));
  // In bf16: q, k and v; o; gate and up; the head. In Q4_0, 18 bytes for 32: down and the
  // embedding.
  const std::size_t C = 96, HD = 192, GD = 64, F = 160, V = 101;
  const std::size_t in_bf16 = 2 * ((HD + 2 * GD) * C + HD * C + 2 * F * C) * 2 + V * C * 2;
  const std::size_t packed =
      2 * C * F * 18 / 32 + 112 * C * 18 / 32;  // 101 rows fill 7 groups of 16
  CHECK(stored_matrices(both.stored).bytes == in_bf16 + packed);
}

TEST_CASE("the device holds the packed bytes, and nothing else of the matrices") {
  const std::size_t of_32[] = {34, 18, 20};
  const TensorType all[] = {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1};
  for (std::size_t i = 0; i < 3; ++i) {
    const BothModels both = models_of(config_of(true), [&](const TensorInfo&) { return all[i]; });
    const std::size_t of_layer = (192 + 2 * 64) * 96 + 192 * 96 + 3 * 160 * 96;
    const DeviceMatrices matrices = stored_matrices(both.stored);
    CHECK(matrices.bytes == (2 * of_layer + 112 * 96) / 32 * of_32[i]);
    CHECK(bf16_matrices(both.stored).bytes == 2 * (2 * of_layer + 101 * 96));
  }
  const BothModels both = models_of(config_of(true), [&](const TensorInfo&) { return all[1]; });
  CHECK(size_on_device(stored_matrices(both.stored), both.stored) ==
        "0.1 MB of weights on the GPU, of 0.4 MB in bf16");
}

TEST_CASE("a stored weight computes as a packed weight does, and others have no stored rows") {
  const Tensor<2> floats = numbers(3, 2, 0, std::size_t(20), std::size_t(64));
  const Tensor<2> x = numbers(4, 2, 0, std::size_t(3), std::size_t(64));
  for (const TensorType type : {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1}) {
    const PackedRows rows = pack_rows(type, quantize_rows(type, floats), 20, 64);
    const Weight packed = packed_weight(rows), stored = stored_weight(rows);
    CHECK(matmul_bt(x, stored) == matmul_bt(x, packed));
    Tensor<1> of_stored = empty(64), of_packed = empty(64);
    stored.row(17, row(of_stored)), packed.row(17, row(of_packed));
    CHECK(of_stored == of_packed);
    REQUIRE(stored_rows(stored));
    CHECK(std::vector<std::uint8_t>(stored_rows(stored)->bytes.begin(),
                                    stored_rows(stored)->bytes.end()) == rows.bytes);
    CHECK_FALSE(stored_rows(packed));
  }
  CHECK_FALSE(stored_rows(Weight(floats)));
  const Tensor<2> wide = numbers(3, 2, 0, std::size_t(2), std::size_t(256));
  const PackedRows q6 = pack_rows(TensorType::q6_k, std::vector<std::uint8_t>(2 * 210), 2, 256);
  REFUSES(stored_weight(q6),
          "form: wanted one that the kernels know (Q8_0, Q4_0, Q4_1), got another");
}

}  // namespace t2t::stored_model_test
