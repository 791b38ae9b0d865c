#include "12_quantization/kernels/stored_weight.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

#include "12_quantization/packed/packed_weight.hpp"

namespace t2t {

std::optional<DeviceForm> device_form(const PackedForm& form) {
  if (form == form_q8_0) return DeviceForm::q8_0;
  if (form == form_q4_0) return DeviceForm::q4_0;
  if (form == form_q4_1) return DeviceForm::q4_1;
  return std::nullopt;
}

/// A packed weight, and where its bytes are: moving the vector that owns them leaves them in place.
class StoredWeight : public PackedWeight {
 public:
  StoredWeight(DeviceForm form, PackedRows rows)
      : PackedWeight(rows.rows, rows.cols, rows.bytes.size()),
        stored{form, rows.bytes},
        packed_(packed_weight(std::move(rows))) {}

  void product(ConstMatrix x, Matrix y) const override { packed_.packed()->product(x, y); }
  void row(std::size_t r, Row to) const override { packed_.packed()->row(r, to); }

  const StoredRows stored;

 private:
  Weight packed_;
};

Weight stored_weight(PackedRows rows) {
  const std::optional<DeviceForm> form = device_form(rows.form);
  if (!form)
    throw std::invalid_argument(
        "form: wanted one that the kernels know (Q8_0, Q4_0, Q4_1), got another");
  return Weight(std::make_shared<StoredWeight>(*form, std::move(rows)));
}

std::optional<StoredRows> stored_rows(const Weight& w) {
  const auto* stored = dynamic_cast<const StoredWeight*>(w.packed());
  return stored ? std::optional(stored->stored) : std::nullopt;
}

Weight stored_matrix(const GgufTensor& tensor, const TensorInfo& info) {
  const std::optional<PackedForm> form = packed_form(tensor.type);
  const bool multiplied = info.role != Role::positions && info.role != Role::router;
  if (!multiplied || !form || !device_form(*form))
    return Weight(floats_of(tensor, info.rows, info.cols));
  return stored_weight(pack_rows(tensor.type, tensor.bytes, info.rows, info.cols));
}

}  // namespace t2t
