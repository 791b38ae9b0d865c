// The registers of four kinds of processor, with the few operations of packed_product.cpp. Each
// holds 16 lanes, one for each row of a group; a register of bytes has 4 in each lane.
// plain_registers.hpp says what each operation does.
#pragma once

#include "12_quantization/packed/avx_registers.hpp"
#include "12_quantization/packed/neon_registers.hpp"
#include "12_quantization/packed/plain_registers.hpp"

namespace t2t {

/// The widest that this program was compiled for.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
using RegistersHere = Avx512Registers;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
using RegistersHere = Avx2Registers;
#elif defined(__aarch64__)
using RegistersHere = NeonRegisters;
#else
using RegistersHere = PlainRegisters;
#endif

}  // namespace t2t
