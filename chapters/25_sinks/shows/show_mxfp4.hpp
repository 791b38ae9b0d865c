// The values of MXFP4, and how far they are from weights.
#pragma once

namespace t2t {

/// The 16 codes with their values.
void show_fp4_values();
/// The error of weights in MXFP4 and in chapter 12's formats of 4 bits, with and without outliers.
void show_mxfp4_errors();

}  // namespace t2t
