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

/// The product of a packed weight. Others find the rows in it.
struct Multiply {
  std::shared_ptr<const PackedRows> rows;
  void operator()(ConstMatrix x, Matrix y) const { packed_product(rounded(x), *rows, y); }
};

/// Rounds x once for all weights.
static void multiply_each(ConstMatrix x, std::span<const WeightProduct> all) {
  static thread_local std::vector<PackedProduct> products;
  products.clear();
  for (const auto& [w, y] : all)
    products.push_back({w.packed()->product.target<Multiply>()->rows.get(), y});
  packed_products(rounded(x), products);
}

Weight packed_weight(PackedRows rows) {
  const auto shared = std::make_shared<const PackedRows>(std::move(rows));
  return Weight(PackedWeight{shared->rows, shared->cols, shared->bytes.size(), Multiply{shared},
                             [shared](std::size_t r, Row to) { unpack_row(*shared, r, to); },
                             multiply_each});
}

Weight packed_floats(TensorType type, ConstMatrix floats) {
  return packed_weight(pack_rows(type, quantize_rows(type, floats), floats.rows, floats.cols));
}

Weight packed_matrix(const GgufTensor& tensor, const TensorInfo& info) {
  const bool multiplied = info.role != Role::positions;
  if (multiplied && packed_form(tensor.type))
    return packed_weight(pack_rows(tensor.type, tensor.bytes, info.rows, info.cols));
  if (multiplied && (tensor.type == TensorType::f16 || tensor.type == TensorType::bf16))
    return half_weight(tensor.type, tensor.bytes, info.rows, info.cols);
  Tensor<2> floats = floats_of(tensor, info.rows, info.cols);
  if (!multiplied || info.cols % block_numbers != 0) return Weight(std::move(floats));
  return packed_floats(TensorType::q8_0, floats);
}

}  // namespace t2t
