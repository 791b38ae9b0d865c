#include "cuda_on_cpu/tensor_core.hpp"

#include <bit>

namespace t2t {
namespace {

struct Operands {
  std::uint32_t a[4], b[2];
  float d[4];
};

struct Sums {
  float d[4];
};

/// The lower (0) or upper (1) number of a register.
float number(std::uint32_t pair, unsigned which) {
  return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000);
}

/// One lane's four sums. Lane 4·g + i holds numbers of a's rows g and g+8, of b's column g, and of
/// d's rows g and g+8.
Sums multiply(unsigned lane, const stand_in::LaneMeeting& lanes) {
  Sums sums;
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
    sums.d[e] = lanes.read<Operands>(lane, lane).d[e];
    for (unsigned k = 0; k < 16; ++k) {
      const auto& a = lanes.read<Operands>(row % 8 * 4 + k % 8 / 2, lane).a;
      const auto& b = lanes.read<Operands>(column * 4 + k % 8 / 2, lane).b;
      sums.d[e] += number(a[row / 8 + 2 * (k / 8)], k % 2) * number(b[k / 8], k % 2);
    }
  }
  return sums;
}

}  // namespace

void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                 stand_in::Place place) {
  const Operands operands{{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
  const Sums sums = stand_in::meet<Sums>(
      ~0u, operands,
      [](unsigned lane, const stand_in::LaneMeeting& lanes) { return multiply(lane, lanes); },
      place);
  for (unsigned e = 0; e < 4; ++e) d[e] = sums.d[e];
}

stand_in::MatrixRows stand_in::gather_rows(const __nv_bfloat16* row, const Place& place) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    fault("ldmatrix wants rows at multiples of 16 bytes", place);
  }
  if (!is_shared(row)) fault("ldmatrix reads from what is not shared memory of the kernel", place);
  return meet<MatrixRows>(
      ~0u, row,
      [](unsigned reader, const LaneMeeting& lanes) {
        MatrixRows rows;
        for (unsigned i = 0; i < 32; ++i) rows.row[i] = lanes.read<const __nv_bfloat16*>(i, reader);
        return rows;
      },
      place);
}

}  // namespace t2t
