// How far a model has moved from its reference, estimated from tokens that it drew itself. With
// x = ln p − ln p_ref of a drawn token, KL(p‖p_ref) is the mean of x, and there are three
// estimates:
//
//          value            slope, d value / d ln p
//   k1     x                1
//   k2     x²/2             x
//   k3     e^−x − 1 + x     1 − e^−x
//
// The values of k1 and k3 have the right mean, and k3's never is negative. As a term of a loss only
// the slope counts: the gradient is slope·(onehot − p), summed over tokens. Its mean is 0 for k1,
// the gradient of KL(p‖p_ref) for k2, and that of KL(p_ref‖p) for k3. grpo.hpp therefore uses k2.
// Schulman 2020, "Approximating KL Divergence", of the values.
#pragma once

namespace t2t {

struct KlEstimate {
  double value;
  double slope;  // of the value, when ln p grows
};

KlEstimate kl_k1(double x);
KlEstimate kl_k2(double x);
KlEstimate kl_k3(double x);

}  // namespace t2t
