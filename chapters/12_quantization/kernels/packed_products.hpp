// The two kernels of a product with packed weights, for packed_kernels.hpp's functions, which check
// their arguments: this header's functions don't. w has a pointer for each matrix of the sums.
#pragma once

#include "12_quantization/kernels/packed_kernels.hpp"

namespace t2t {

// chapter 11's epilogues.hpp
struct StoreSums;
struct AddSums;
struct SwigluSums;

/// packed_few_rows.cu: a block for each 16 elements of a row of the result.
void multiply_packed_few(const NormedRows& x, DeviceForm form, const unsigned char* const (&w)[1],
                         const StoreSums& sums, int T, int in, int out);
void multiply_packed_few(const NormedRows& x, DeviceForm form, const unsigned char* const (&w)[2],
                         const SwigluSums& sums, int T, int in, int out);
void multiply_packed_few(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                         const AddSums& sums, int T, int in, int out);

/// packed_many_rows.cu: tiles on the tensor cores.
void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                          const StoreSums& sums, int T, int in, int out);
void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[2],
                          const SwigluSums& sums, int T, int in, int out);
void multiply_packed_many(const bf16* x, DeviceForm form, const unsigned char* const (&w)[1],
                          const AddSums& sums, int T, int in, int out);

}  // namespace t2t
