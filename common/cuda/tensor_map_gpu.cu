#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "cuda/device.hpp"
#include "cuda/tensor_map.hpp"

namespace t2t {

/// The driver's function. It is looked up, so that nothing has to be linked with the driver.
static PFN_cuTensorMapEncodeTiled_v12000 encode_tiled() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  T2T_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                  cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess) {
    throw std::runtime_error(
        "the GPU's driver has no cuTensorMapEncodeTiled; wanted one for CUDA 12");
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
}

TensorMap tensor_map(const HeadRows& rows) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = encode_tiled();
  const MapDimensions of = map_dimensions(rows);
  cuuint64_t size[5], stride[4];
  cuuint32_t box[5], element_strides[5] = {1, 1, 1, 1, 1};
  for (int i = 0; i < 5; ++i) {
    size[i] = static_cast<cuuint64_t>(of.size[i]);
    box[i] = static_cast<cuuint32_t>(of.box[i]);
    if (i > 0) stride[i - 1] = static_cast<cuuint64_t>(of.stride[i]);
  }
  TensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 5, const_cast<bf16*>(rows.data), size, stride,
             box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled refuses a tensor: error " +
                             std::to_string(static_cast<int>(result)));
  }
  return map;
}

}  // namespace t2t
