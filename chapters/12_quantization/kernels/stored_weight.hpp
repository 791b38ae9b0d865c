// A packed weight whose bytes can be asked for, so that they can be copied to a device as they are.
// Runs on the host; nvcc does not read this header.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "10_pretrained/model/load_model.hpp"
#include "12_quantization/kernels/packed_kernels.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "weight.hpp"

namespace t2t {

/// The form that the kernels have for it; nothing for other forms.
std::optional<DeviceForm> device_form(const PackedForm& form);

/// A Weight like packed_weight(rows), with the same products and rows, whose bytes stored_rows
/// finds. Throws std::invalid_argument for a form that the kernels don't know.
Weight stored_weight(PackedRows rows);

/// The bytes of a stored_weight, which own them; nothing for other weights.
struct StoredRows {
  DeviceForm form;
  std::span<const std::uint8_t> bytes;  // in packed_rows.hpp's order
};
std::optional<StoredRows> stored_rows(const Weight& w);

/// A matrix of a file: a stored_weight if the kernels know its type, and otherwise floats, which a
/// device rounds to bf16. Fits chapter 10's MakeWeight.
Weight stored_matrix(const GgufTensor& tensor, const TensorInfo& info);

}  // namespace t2t
