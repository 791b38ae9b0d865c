#include "17_fine_tuning/rewards/kl.hpp"

#include <cmath>

namespace t2t {

KlEstimate kl_k1(double x) { return {x, 1}; }

KlEstimate kl_k2(double x) { return {x * x / 2, x}; }

// expm1 keeps the small values of a model that has hardly moved, where e^−x − 1 + x would cancel.
KlEstimate kl_k3(double x) { return {std::expm1(-x) + x, -std::expm1(-x)}; }

}  // namespace t2t
