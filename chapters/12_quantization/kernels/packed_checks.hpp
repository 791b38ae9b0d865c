// What the kernels with packed weights refuse: see packed_kernels.hpp. Runs on the host.
#pragma once

#include "12_quantization/kernels/packed_kernels.hpp"

namespace t2t {

void expect_packed_sizes(int T, int in, int out);
void expect_packed(const char* name, const PackedOnDevice& w);

}  // namespace t2t
