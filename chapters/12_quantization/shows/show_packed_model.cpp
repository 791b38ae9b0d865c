#include "12_quantization/shows/show_packed_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "10_pretrained/model/load_model.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/packed_product.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "12_quantization/shows/show_formats.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "program/print.hpp"
#include "random.hpp"
#include "timing/measure.hpp"

namespace t2t {

/// The logits of all tokens of a text.
static Tensor<2> logits_of(const Model& model, std::span<const int> ids) {
  ModelState state(model.config(), ids.size());
  Tensor<2> logits = empty(ids.size(), model.config().V);
  forward_all(model, state, ids, logits);
  return logits;
}

/// Whether a matrix is rounded at all, and to what.
static MakeWeight all_rounded_to(TensorType type) {
  return [type](const GgufTensor& tensor, const TensorInfo& info) {
    return packed_floats(type, floats_of(tensor, info.rows, info.cols));
  };
}

void show_logits(const Session& packed) {
  print_section("The same model in other formats");
  const std::vector<int> ids = packed.prompt(
      "The sun rose over the village, and the baker opened his shop. Bread had been in the oven "
      "since four in the morning, and the smell of it went up the street.",
      SpecialTokens::as_text);
  const Model floats = read_model(packed.file);
  const Tensor<2> want = logits_of(floats, ids);
  const auto most_likely = [](ConstRow logits) {
    return std::ranges::max_element(logits) - logits.begin();
  };
  Table table({"matrices", ">size", ">difference of the logits", ">same most likely token"});
  const auto add = [&](const std::string& name, const Model& model) {
    const Tensor<2> got = logits_of(model, ids);
    std::size_t same = 0;
    for (std::size_t t = 0; t < ids.size(); ++t)
      same += most_likely(row(got, t)) == most_likely(row(want, t));
    table.add({name, bytes_text(double(bytes(model.weights()))),
               fmt::format("{:.2f} %", 100 * relative_error(got, want)),
               fmt::format("{} of {}", same, ids.size())});
  };
  add("floats", floats);
  add("as in the file", packed.model);
  for (const TensorType type : shown_types)
    add("all in " + type_name(type), read_model(packed.file, all_rounded_to(type)));
  table.print();
  fmt::print("\n");
  print_paragraph(
      "The difference is a root mean square over all logits, as a share of theirs. Where the "
      "format is the file's own, the weights are the same and only the activations are rounded.");
}

void show_instructions() {
  print_section("One token with a matrix [1536, 576] of Q4_1");
  const Tensor<2> floats = Random(1).normal<2>({1536, 576}), x = Random(2).normal<2>({1, 576});
  const PackedRows w = pack_rows(TensorType::q4_1, quantize_rows(TensorType::q4_1, floats),
                                 floats.shape(0), floats.shape(1));
  Tensor<2> y = empty(1, 1536);
  EightBitRows rounded;
  Table table({"instructions", ">time", ">times floats"});
  for (const Instructions& instructions : instructions_here()) {
    const Pair seconds = median_seconds_in_turn(
        [&] {
          round_rows(x, rounded);
          packed_product(rounded, w, y, instructions);
        },
        [&] { matmul_bt(ConstMatrix(x), ConstMatrix(floats), Matrix(y)); });
    table.add({instructions.name, fmt::format("{:.0f} us", 1e6 * seconds.first),
               fmt::format("{:.1f}", seconds.second / seconds.first)});
  }
  table.print();
}

}  // namespace t2t
