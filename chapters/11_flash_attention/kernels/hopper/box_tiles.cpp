#include "11_flash_attention/kernels/hopper/box_tiles.hpp"

#include <stdexcept>
#include <string>

#include "cuda/device.hpp"

namespace t2t {
namespace {

TensorMap map_of(const AttentionCall<bf16>& call, const bf16* data, const Strides& strides,
                 int tokens, int heads, int box_tokens) {
  return tensor_map({data, call.B, tokens, heads, call.D, strides.batch, strides.token,
                     strides.head, box_tokens});
}

void expect_capability(const char* kernel, bool has, const char* wanted) {
  const int got = compute_capability();
  if (!has)
    throw std::runtime_error(std::string(kernel) + ": wanted compute capability " + wanted +
                             ", got " + std::to_string(got / 10) + "." + std::to_string(got % 10));
}

}  // namespace

CallMaps call_maps(const AttentionCall<bf16>& call, int queries, int keys) {
  return {map_of(call, call.q, call.q_strides, call.T, call.H, queries),
          map_of(call, call.k, call.k_strides, call.S, call.G, keys),
          map_of(call, call.v, call.v_strides, call.S, call.G, keys)};
}

TensorMap out_map(const AttentionCall<bf16>& call, int queries) {
  return map_of(call, call.out, call.out_strides, call.T, call.H, queries);
}

void expect_bulk_copies(const char* kernel) {
  expect_capability(kernel, compute_capability() >= 90, "9.0 or newer");
}

void expect_warpgroups(const char* kernel) {
  expect_capability(kernel, compute_capability() == 90, "9.0");
}

}  // namespace t2t
