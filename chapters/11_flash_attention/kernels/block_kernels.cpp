// Uploads a block's weights, and launches its kernels one after the other. Runs on the host.
#include "11_flash_attention/kernels/block_kernels.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "04_causal_attention/kernels/attention_naive.hpp"
#include "08_block/differences/differences.hpp"
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "11_flash_attention/kernels/uploads.hpp"
#include "shapes.hpp"

namespace t2t {

static DeviceBuffer<float> uploaded(const Weight& w) {
  Tensor<2> room;
  return uploaded(floats_of(w, room));  // [out, in]
}

/// Refuses what the kernels do not compute.
static const BlockSettings& supported(const BlockSettings& s, const BlockWeights& weights,
                                      const RopeTable& table, int T_max) {
  expect_settings(s);
  expect_only(differences_from_llama(s), {Difference::halves, Difference::scaled_rope},
              "the block for a GPU");
  expect(s.D == 64 || s.D == 128, "D", "64 or 128", s.D);
  expect(s.F >= 1, "F", "at least 1", s.F);
  expect_size("T_max", T_max);
  expect_weights(weights, s);
  expect_table(table, s.D, 0, std::size_t(T_max));
  return s;
}

static DeviceBuffer<float> room(int T, std::size_t width) {
  return DeviceBuffer<float>(std::size_t(T) * width);
}

BlockKernels::BlockKernels(const BlockSettings& settings, const BlockWeights& weights,
                           const RopeTable& table, int T_max)
    : settings_(supported(settings, weights, table, T_max)),
      T_max_(T_max),
      gain_1_(uploaded(weights.attention_norm.gain)),
      gain_2_(uploaded(weights.feed_forward_norm.gain)),
      w_q_(uploaded(weights.w_q)),
      w_k_(uploaded(weights.w_k)),
      w_v_(uploaded(weights.w_v)),
      w_o_(uploaded(weights.w_o)),
      w_gate_(uploaded(weights.feed_forward.w_gate)),
      w_up_(uploaded(weights.feed_forward.w_up)),
      w_down_(uploaded(weights.feed_forward.w_down)),
      cos_(uploaded(table.cos, std::size_t(T_max))),
      sin_(uploaded(table.sin, std::size_t(T_max))),
      normed_(room(T_max, settings.C)),
      added_(room(T_max, settings.C)),
      q_(room(T_max, settings.H * settings.D)),
      k_(room(T_max, settings.G * settings.D)),
      v_(room(T_max, settings.G * settings.D)),
      heads_(room(T_max, settings.H * settings.D)),
      scores_(room(T_max, settings.H * std::size_t(T_max))),
      gate_(room(T_max, settings.F)),
      up_(room(T_max, settings.F)) {}

/// heads_ from normed_.
void BlockKernels::attention(int T) {
  const int C = int(settings_.C), H = int(settings_.H), G = int(settings_.G), D = int(settings_.D);
  const RopePairs pairs =
      settings_.pairing == Pairing::neighbours ? RopePairs::neighbours : RopePairs::halves;
  launch_product(normed_.data(), w_q_.data(), T, C, H * D, q_.data());
  launch_product(normed_.data(), w_k_.data(), T, C, G * D, k_.data());
  launch_product(normed_.data(), w_v_.data(), T, C, G * D, v_.data());
  launch_rope(cos_.data(), sin_.data(), T_max_, 0, T, H, D, pairs, q_.data());
  launch_rope(cos_.data(), sin_.data(), T_max_, 0, T, G, D, pairs, k_.data());

  const Strides queries = row_major(T, H, D), keys = row_major(T, G, D);
  const AttentionCall<float> call = {
      q_.data(), k_.data(), v_.data(), heads_.data(), queries, keys, keys, queries, 1, T, T,
      H,         G,         D,         true,          0};
  attend_naive(call, scores_.data());
}

void BlockKernels::run(float* x, int T) {
  expect_device("x", x);
  expect(T >= 1 && T <= T_max_, "T", "1 to " + std::to_string(T_max_), T);
  const int C = int(settings_.C), F = int(settings_.F), HD = int(settings_.H * settings_.D);
  const float eps = settings_.eps;

  // Attention reads the stream through a norm. Its result is added by the kernel that also computes
  // the second norm.
  launch_rms_norm(x, gain_1_.data(), eps, T, C, normed_.data());
  attention(T);
  launch_product(heads_.data(), w_o_.data(), T, HD, C, added_.data());
  launch_add_rms_norm(added_.data(), gain_2_.data(), eps, T, C, x, normed_.data());

  // The network reads that norm, and its result is added to the stream.
  launch_product(normed_.data(), w_gate_.data(), T, C, F, gate_.data());
  launch_product(normed_.data(), w_up_.data(), T, C, F, up_.data());
  launch_swiglu(gate_.data(), up_.data(), T, F, up_.data());
  launch_product(up_.data(), w_down_.data(), T, F, C, added_.data());
  launch_add_rows(added_.data(), T, C, x);
}

}  // namespace t2t
