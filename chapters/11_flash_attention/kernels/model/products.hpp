// The two kernels of a product, for model_kernels.hpp's functions, which check their arguments:
// this header's functions don't.
#pragma once

#include "11_flash_attention/kernels/model/model_kernels.hpp"

namespace t2t {

// epilogues.hpp
struct StoreSums;
struct AddSums;
struct SwigluSums;

/// few_rows.cu: a warp for each element of the result.
void multiply_few(const NormedRows& x, const StoreSums& epilogue, int T, int in, int out);
void multiply_few(const NormedRows& x, const SwigluSums& epilogue, int T, int in, int out);
void multiply_few(const bf16* x, const AddSums& epilogue, int T, int in, int out);

/// many_rows.cu: tiles on the tensor cores.
void multiply_many(const bf16* x, const StoreSums& epilogue, int T, int in, int out);
void multiply_many(const bf16* x, const SwigluSums& epilogue, int T, int in, int out);
void multiply_many(const bf16* x, const AddSums& epilogue, int T, int in, int out);

}  // namespace t2t
