#include "12_quantization/program/float_flag.hpp"

#include <stdexcept>

#include "12_quantization/packed/packed_weight.hpp"

namespace t2t {

void pack_unless(bool floats, const Program& program, Flags& flags) {
  if (program.given("adapter") && !floats)
    throw std::invalid_argument("--adapter: wanted --float too, since it changes only floats");
  if (!floats) flags.make_weight = packed_matrix;
}

}  // namespace t2t
