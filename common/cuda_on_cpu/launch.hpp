// How a kernel is launched on the stand-in, with the CUDA keywords that its source needs.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <vector>

#include "cuda_on_cpu/stand_in.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static  // blocks run one after another: one copy is enough

/// T* name: the dynamic shared memory of the running block.
#define T2T_DYNAMIC_SHARED(T, name) \
  T* name = reinterpret_cast<T*>(::t2t::stand_in::dynamic_shared())
#define T2T_DYNAMIC_TILES(T, name) T2T_DYNAMIC_SHARED(T, name)

namespace t2t {

/// What is launched, and where in the source.
using LaunchSite = stand_in::LaunchSite;

namespace stand_in {

/// The launches of the graph being recorded (cuda/graph.hpp), or null.
inline std::vector<std::function<void()>>*& recorded_launches() {
  static std::vector<std::function<void()>>* launches = nullptr;
  return launches;
}

}  // namespace stand_in

template <class... Parameters, class... Arguments>
void launch(const LaunchSite& site, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, const Arguments&... arguments) {
  const auto run = [=, values = std::tuple<Parameters...>(static_cast<Parameters>(arguments)...)] {
    stand_in::run(site, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
                  [&] { std::apply(kernel, values); });
  };
  if (stand_in::recorded_launches() != nullptr)
    stand_in::recorded_launches()->push_back(run);
  else
    run();
}

/// How many blocks with this much dynamic shared memory a multiprocessor of the card that T2T_CARD
/// names has room for: at most 2048 threads. The stand-in knows nothing of registers.
template <class... Parameters>
int blocks_of_multiprocessor(const LaunchSite& site, void (*)(Parameters...), int threads,
                             std::size_t dynamic_bytes) {
  return stand_in::blocks_of_multiprocessor(site, threads, dynamic_bytes);
}

}  // namespace t2t
