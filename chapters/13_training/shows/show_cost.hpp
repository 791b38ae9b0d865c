// Shows what a step of training costs: memory tensor by tensor, and time compared with the matrix
// products alone.
#pragma once

#include "13_training/trainer/trainer.hpp"

namespace t2t {

void show_memory(const Trainer& trainer);

/// Times a few steps, and compares them with matrix products of as many FLOPs.
void show_step_speed(Trainer& trainer);

}  // namespace t2t
