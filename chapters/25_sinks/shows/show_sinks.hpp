// What a sink takes of a row's weight, and what a head learns with one.
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace t2t {

/// A matrix worked by hand, with its gradients.
void show_by_hand();
/// The sink's mean weight beside random scores, by its score and the number of keys: [sinks, S].
Tensor<2> show_shares(std::uint64_t seed);
/// A head that must find something or say nothing, with and without a sink.
void show_learned(std::uint64_t seed);

}  // namespace t2t
