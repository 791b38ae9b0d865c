// What quantization does to weights: eight of them one by one, and many by format. For main.cpp.
#pragma once

#include "10_pretrained/file/dequantize.hpp"

namespace t2t {

constexpr TensorType shown_types[] = {TensorType::q8_0, TensorType::q4_1, TensorType::q4_0};

/// One block of 32 weights from −1 to 0.86, of which the first eight are shown.
void show_block();

/// The same weights, without and with a few that are far larger than the rest.
void show_errors();

/// Where in a row an outlier does harm: the error of each 32 weights, by format.
void show_outlier();

}  // namespace t2t
