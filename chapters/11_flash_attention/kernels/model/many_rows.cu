// A product of many rows with weights in bf16, by the kernel in many_rows.hpp: the weights are
// copied as they are, while the tensor cores multiply those before.
#include <cstddef>

#include "11_flash_attention/kernels/model/epilogues.hpp"
#include "11_flash_attention/kernels/model/many_rows.hpp"
#include "11_flash_attention/kernels/model/products.hpp"

namespace t2t {

namespace {

template <class Epilogue>
struct CopiedWeights {
  Epilogue epilogue;
  static constexpr int matrices = Epilogue::matrices;

  /// What lies outside of the matrix becomes 0.
  __device__ __forceinline__ void fill(int m, bf16* tile, int first_out, int column, int in,
                                       int out) const {
    const bool inside = column + int(threadIdx.x) % (tile_k / 8) * 8 < in;
    copy_rows<tile_k, tile_outs, tile_threads>(
        tile, epilogue.weights(m) + std::size_t(first_out) * in + column, in,
        inside ? out - first_out : 0, threadIdx.x);
  }
  __device__ void store(std::size_t at, const float (&sums)[matrices]) const {
    epilogue.store(at, sums);
  }
};

}  // namespace

void multiply_many(const bf16* x, const StoreSums& epilogue, int T, int in, int out) {
  launch_many_rows(x, CopiedWeights<StoreSums>{epilogue}, T, in, out);
}
void multiply_many(const bf16* x, const SwigluSums& epilogue, int T, int in, int out) {
  launch_many_rows(x, CopiedWeights<SwigluSums>{epilogue}, T, in, out);
}
void multiply_many(const bf16* x, const AddSums& epilogue, int T, int in, int out) {
  launch_many_rows(x, CopiedWeights<AddSums>{epilogue}, T, in, out);
}

}  // namespace t2t
