#include "cuda/tensor_map.hpp"

namespace t2t {

TensorMap tensor_map(const HeadRows& rows) {
  const MapDimensions of = map_dimensions(rows);
  return {reinterpret_cast<const std::byte*>(rows.data), of.size, of.stride, of.box};
}

}  // namespace t2t
