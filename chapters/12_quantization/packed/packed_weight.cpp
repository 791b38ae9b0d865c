#include "12_quantization/packed/packed_weight.hpp"

#include <memory>
#include <utility>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/packed/half_weight.hpp"
#include "12_quantization/packed/packed_product.hpp"

namespace t2t {

/// x in 8 bits, in memory that each thread keeps from call to call.
static const EightBitRows& rounded(ConstMatrix x) {
  static thread_local EightBitRows rows;
  round_rows(x, rows);
  return rows;
}

/// Quantized weights, which are multiplied by x in 8 bits.
class FewBitsWeight : public PackedWeight {
 public:
  explicit FewBitsWeight(PackedRows w)
      : PackedWeight(w.rows, w.cols, w.bytes.size()), w_(std::move(w)) {}

  void product(ConstMatrix x, Matrix y) const override { packed_product(rounded(x), w_, y); }
  void row(std::size_t r, Row to) const override { unpack_row(w_, r, to); }
  bool products(ConstMatrix x, std::span<const WeightProduct> all) const override;

 private:
  PackedRows w_;  // [rows, cols]
};

/// Rounds x once for all weights.
bool FewBitsWeight::products(ConstMatrix x, std::span<const WeightProduct> all) const {
  static thread_local std::vector<PackedProduct> products;
  products.clear();
  for (const auto& [w, y] : all) {
    const auto* packed = dynamic_cast<const FewBitsWeight*>(w.packed());
    if (!packed) return false;
    products.push_back({&packed->w_, y});
  }
  packed_products(rounded(x), products);
  return true;
}

Weight packed_weight(PackedRows rows) {
  return Weight(std::make_shared<FewBitsWeight>(std::move(rows)));
}

Weight packed_floats(TensorType type, ConstMatrix floats) {
  return packed_weight(pack_rows(type, quantize_rows(type, floats), floats.rows, floats.cols));
}

Weight packed_matrix(const GgufTensor& tensor, const TensorInfo& info) {
  const bool multiplied = info.role != Role::positions && info.role != Role::router;
  if (multiplied && packed_form(tensor.type))
    return packed_weight(pack_rows(tensor.type, tensor.bytes, info.rows, info.cols));
  if (multiplied && (tensor.type == TensorType::f16 || tensor.type == TensorType::bf16))
    return half_weight(tensor.type, tensor.bytes, info.rows, info.cols);
  Tensor<2> floats = floats_of(tensor, info.rows, info.cols);
  if (!multiplied || info.cols % block_numbers != 0) return Weight(std::move(floats));
  return packed_floats(TensorType::q8_0, floats);
}

}  // namespace t2t
