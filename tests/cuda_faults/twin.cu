// A kernel with the name, the parameters and the shared variables of one in faults.cu: the two stay
// apart.
#include "cuda/device.hpp"
#include "cuda/kernel.hpp"
#include "faults.hpp"

namespace t2t {
namespace {

__global__ void good(int* out) {
  __shared__ int ready, much[12000];
  if (threadIdx.x == 0) ready = much[0] = 1;
  *out = ready * much[0];
}

}  // namespace

int launch_twin() {
  DeviceBuffer<int> out(1);
  T2T_LAUNCH(good, 1, 1, 0, out.data());
  return out.download()[0];
}

}  // namespace t2t
