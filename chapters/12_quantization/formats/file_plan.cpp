#include "12_quantization/formats/file_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

namespace {
/// A type that files are written in.
struct Written {
  std::string_view name;
  TensorType type;
  std::uint32_t file_type;  // general.file_type
};
}  // namespace
static constexpr Written written_types[] = {{"q8_0", TensorType::q8_0, 7},
                                            {"q4_0", TensorType::q4_0, 2},
                                            {"q4_1", TensorType::q4_1, 3},
                                            {"q4_k", TensorType::q4_k, 14},
                                            {"q6_k", TensorType::q6_k, 18}};

TensorType rounded_type(std::string_view name) {
  const auto found = std::ranges::find(written_types, name, &Written::name);
  if (found == std::end(written_types))
    throw std::invalid_argument(fmt::format("--type: wanted q8_0, q4_0, q4_1, q4_k or q6_k, got {}",
                                            name.empty() ? "none" : printable(name)));
  return found->type;
}

/// The type in which a matrix with `cols` columns is written: the wanted one if its blocks fit,
/// else one with smaller blocks. If those do not fit either, the matrix keeps its type.
static TensorType type_of_rows(TensorType wanted, std::size_t cols, TensorType has) {
  const auto fits = [&](TensorType type) { return cols % block_layout(type).numbers == 0; };
  if (fits(wanted)) return wanted;
  const TensorType smaller = wanted == TensorType::q4_k ? TensorType::q4_1 : TensorType::q8_0;
  return block_layout(wanted).numbers == 256 && fits(smaller) ? smaller : has;
}

std::uint64_t numbers_of(const GgufTensor& tensor) {
  const BlockLayout block = block_layout(tensor.type);
  return tensor.size / block.bytes * block.numbers;
}

std::uint64_t alignment_of(const GgufFile& file) {
  return std::uint64_t(file.metadata().integer("general.alignment", 32));
}

std::vector<PlannedTensor> plan_tensors(const GgufFile& in, TensorType type) {
  const Config config = read_config(in);
  expect_tensors(in, config);
  std::set<std::string, std::less<>> matrices;
  for (const NamedShape& tensor : tensor_names(config))
    if (tensor.shape.size() >= 2 && tensor.role != Role::router) matrices.insert(tensor.name);

  std::vector<PlannedTensor> plan;
  std::uint64_t offset = 0;
  const std::uint64_t alignment = alignment_of(in);
  for (const GgufTensor& tensor : in.tensors()) {
    PlannedTensor planned{&tensor, matrices.contains(tensor.name), tensor.type, 0, offset};
    if (planned.is_matrix) planned.type = type_of_rows(type, tensor.shape.back(), tensor.type);
    const BlockLayout block = block_layout(planned.type);
    planned.size = numbers_of(tensor) / block.numbers * block.bytes;
    offset += (planned.size + alignment - 1) / alignment * alignment;
    plan.push_back(planned);
  }
  return plan;
}

void copy_entry(const GgufEntry& entry, GgufBytes& to) {
  to.text(entry.key);
  if (entry.is_array) to.put(GgufType::array);
  to.put(entry.type);
  if (entry.is_array) to.put(std::uint64_t(entry.count));
  to.bytes.insert(to.bytes.end(), entry.bytes.begin(), entry.bytes.end());
}

std::vector<std::uint8_t> file_head(const GgufFile& in, const std::vector<PlannedTensor>& plan,
                                    TensorType type) {
  const auto written = std::ranges::find(written_types, type, &Written::type);
  if (written == std::end(written_types))
    throw std::invalid_argument(
        fmt::format("type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got {}", type_name(type)));

  // These two entries are new or replaced; version 2 is the present form of all blocks.
  const std::pair<std::string_view, std::uint32_t> ours[] = {
      {"general.file_type", written->file_type}, {"general.quantization_version", 2}};
  std::vector<const GgufEntry*> kept;
  for (const GgufEntry& entry : in.metadata().entries())
    if (entry.key != ours[0].first && entry.key != ours[1].first) kept.push_back(&entry);

  GgufBytes head;
  head.header(plan.size(), kept.size() + std::size(ours));
  for (const GgufEntry* entry : kept) copy_entry(*entry, head);
  for (const auto& [key, value] : ours) head.entry(key, value);
  for (const PlannedTensor& planned : plan) {
    const std::vector<std::size_t>& shape = planned.from->shape;
    head.tensor(planned.from->name, {shape.rbegin(), shape.rend()}, std::uint32_t(planned.type),
                planned.offset);
  }
  return head.pad(alignment_of(in)).bytes;
}

}  // namespace t2t
