#include "24_delta_rule/channels/channel_backward.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "shapes.hpp"

namespace t2t {

// [scans]
/// Forward: dq, [T, D]. The state becomes the last one.
static Tensor<2> scan_for_dq(const ChannelTokens& tokens, const Tensor<2>& dout, Tensor<2>& state) {
  Tensor<2> dq = xt::zeros<float>({tokens.T(), tokens.D()});
  for (std::size_t t = 0; t < tokens.T(); ++t)
    for (std::size_t d = 0; d < tokens.D(); ++d) {
      const float decay = std::exp(tokens.g(t, d));
      for (std::size_t e = 0; e < tokens.Dv(); ++e) {
        state(d, e) = decay * state(d, e) + tokens.k(t, d) * tokens.v(t, e);
        dq(t, d) += state(d, e) * dout(t, e);
      }
    }
  return dq;
}

/// From the last token to the first: dk and dv. dstate becomes the gradient of the first state.
static void scan_for_dk_and_dv(const ChannelTokens& tokens, const Tensor<2>& dout,
                               Tensor<2>& dstate, ChannelTokens& d) {
  for (std::size_t t = tokens.T(); t-- > 0;)
    for (std::size_t c = 0; c < tokens.D(); ++c) {
      const float decay = std::exp(tokens.g(t, c));
      for (std::size_t e = 0; e < tokens.Dv(); ++e) {
        dstate(c, e) += tokens.q(t, c) * dout(t, e);
        d.k(t, c) += dstate(c, e) * tokens.v(t, e);
        d.v(t, e) += dstate(c, e) * tokens.k(t, c);
        dstate(c, e) *= decay;
      }
    }
}

ChannelGradients channel_backward(const ChannelTokens& tokens, const Tensor<2>& state,
                                  const Tensor<2>& dout, const Tensor<2>& dlast) {
  expect_channels(tokens, state);
  const std::size_t T = tokens.T(), D = tokens.D(), Dv = tokens.Dv();
  expect_shape("dout", dout, {T, Dv});
  expect_shape("dlast", dlast, {D, Dv});
  Tensor<2> last = state;  // [D, Dv]
  ChannelGradients d{{scan_for_dq(tokens, dout, last), xt::zeros<float>({T, D}),
                      xt::zeros<float>({T, Dv}), empty(T, D)},
                     dlast};
  scan_for_dk_and_dv(tokens, dout, d.state, d.tokens);

  // Sums from the end, channel by channel. In double, since large terms may cancel.
  for (std::size_t c = 0; c < D; ++c) {
    double sum = 0;
    for (std::size_t e = 0; e < Dv; ++e) sum += double(dlast(c, e)) * last(c, e);
    for (std::size_t t = T; t-- > 0;) {
      sum += double(tokens.q(t, c)) * d.tokens.q(t, c) - double(tokens.k(t, c)) * d.tokens.k(t, c);
      d.tokens.g(t, c) = float(sum);
    }
  }
  return d;
}
// [/scans]

}  // namespace t2t
