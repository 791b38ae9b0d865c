#include "12_quantization/packed_weight.hpp"

#include <memory>
#include <utility>

#include "12_quantization/packed_product.hpp"
#include "12_quantization/quantize.hpp"

namespace t2t {

Weight packed_weight(PackedRows rows) {
  const auto shared = std::make_shared<const PackedRows>(std::move(rows));
  return Weight(PackedWeight{
      shared->rows, shared->cols, shared->bytes.size(),
      [shared](ConstMatrix x, Matrix y) {
        static thread_local EightBitRows rounded;  // keeps its memory from call to call
        round_rows(x, rounded);
        packed_product(rounded, *shared, y);
      },
      [shared](std::size_t r, Row to) { unpack_row(*shared, r, to); }});
}

Weight packed_floats(TensorType type, ConstMatrix floats) {
  return packed_weight(pack_rows(type, quantize_rows(type, floats), floats.rows, floats.cols));
}

Weight packed_matrix(const GgufTensor& tensor, const TensorInfo& info) {
  if (packed_form(tensor.type) && info.role != Role::positions)
    return packed_weight(pack_rows(tensor.type, tensor.bytes, info.rows, info.cols));
  Tensor<2> floats = empty(info.rows, info.cols);
  dequantize_rows(tensor.type, tensor.bytes, floats);
  if (info.cols % block_numbers != 0 || info.role == Role::positions)
    return Weight(std::move(floats));
  return packed_floats(TensorType::q8_0, floats);
}

}  // namespace t2t
