// MXFP4: blocks of 32 weights, each a float of 4 bits, which share one power of two as their scale.
//
//   value = 2^(e − 127) · fp4      e: a byte for each block (E8M0)      fp4: one of 16 codes (E2M1)
//
//   code     a bit for the sign, 2 for the exponent, 1 for the fraction
//   fp4      0, ½, 1, 1½, 2, 3, 4 and 6, for codes 0 to 7; their negatives for codes 8 to 15
//   packing  2^(e − 127) = 2^(⌊log₂ max|x|⌋ − 2); x / 2^(e − 127) to the nearest of the 16 values,
//            halfway to the code that ends in 0, beyond 6 to 6
//
// A block is stored in 17 bytes: e, then 16 bytes whose low halves are the codes of weights 0 … 15
// and whose high halves are those of weights 16 … 31. That is GGUF's order, its type 39; the files
// that OpenAI published have neighbours in a byte. Dividing by a power of two is exact, so the only
// rounding is that of the code. Open Compute Project 2023, "OCP Microscaling Formats (MX)
// Specification v1.0". Chapter 12 has the formats whose codes are integers; mxfp4_weight.hpp
// multiplies by weights that stay packed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor.hpp"

namespace t2t {

constexpr std::size_t mxfp4_numbers = 32, mxfp4_bytes = 17;  // of a block

/// The value of a code from 0 to 15. Only its lowest 4 bits are read.
float fp4_value(std::uint8_t code);

/// The code of the value nearest to x, halfway between two the one that ends in 0: "round to
/// nearest, ties to even". Beyond 6 it is that of 6, or −6. Throws std::invalid_argument for a NaN.
std::uint8_t nearest_fp4(float x);

/// 2^(e − 127), exactly, from 2^−127 on. Throws std::invalid_argument for 255, which means NaN.
float e8m0_value(std::uint8_t e);

/// Packs each row's blocks of 32. A block of zeros gets e = 0. No value of a block is then off by
/// more than a quarter of its largest |x|: up to 6 scales, neighbouring values are at most 2 scales
/// apart, of which the largest |x| has 4 or more; an |x| from 6 to 8 scales becomes 6. (Where
/// max|x| is below 2^−125, e stays 0, and an error is up to 2^−128.) Throws std::invalid_argument
/// for rows that are not whole blocks, and for a weight that is not finite.
std::vector<std::uint8_t> pack_mxfp4(ConstMatrix x);  // [T, C]

/// The way back; threads share the rows. Throws std::invalid_argument unless a row is whole blocks
/// and bytes has exactly the size of all rows, and, naming row and block, for a scale that is NaN.
void unpack_mxfp4(std::span<const std::uint8_t> bytes, Matrix to);  // [rows, cols]

/// One row, whose scales have been checked.
void unpack_mxfp4_row(const std::uint8_t* blocks, Row to);  // [cols]

/// Checks sizes and scales, as unpack_mxfp4 does.
void expect_mxfp4(std::span<const std::uint8_t> bytes, std::size_t rows, std::size_t cols);

/// The same values as blocks of Q8_0, exactly: twice a value is an integer from −12 to 12, and half
/// a scale is an F16 if e is from 104 to 143. A block of zeros may have any scale. Chapter 12's
/// product of integers can then multiply by them, with twice as many bytes. Throws as expect_mxfp4
/// does, and for an e outside of this range.
std::vector<std::uint8_t> mxfp4_as_q8_0(std::span<const std::uint8_t> bytes, std::size_t rows,
                                        std::size_t cols);

}  // namespace t2t
