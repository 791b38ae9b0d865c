// What the row kernels refuse. This file runs on the host.
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_size(const char* name, int got) { expect(got >= 1, name, "at least 1", got); }

void expect_eps(float eps) { expect(eps >= 0, "eps", "0 or more", eps); }

}  // namespace t2t
