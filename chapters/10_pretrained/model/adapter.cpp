#include "10_pretrained/model/adapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include "10_pretrained/file/write_gguf.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "linalg.hpp"
#include "shapes.hpp"
#include "utf8_start.hpp"

namespace t2t {

static constexpr std::string_view ending_of_a = ".lora_a", ending_of_b = ".lora_b";

[[noreturn]] static void fail(const GgufFile& file, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", file.name(), what));
}

static void expect_text(const GgufFile& file, const char* key, std::string_view wanted) {
  const std::string got(file.metadata().text(key));
  if (got != wanted)
    fail(file, fmt::format("{}: wanted \"{}\", got \"{}\"", key, wanted, printable(got)));
}

static bool all_finite(const Tensor<2>& x) {
  return std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
}

static Tensor<2> finite_matrix(const GgufFile& file, const GgufTensor& stored) {
  if (stored.shape.size() != 2) fail(file, printable(stored.name) + ": wanted a matrix");
  Tensor<2> x = file.matrix(stored.name, stored.shape[0], stored.shape[1]);
  if (!all_finite(x)) fail(file, printable(stored.name) + ": wanted finite numbers");
  return x;
}

Adapter read_adapter(const GgufFile& file) {
  expect_text(file, "general.type", "adapter");
  expect_text(file, "adapter.type", "lora");
  Adapter adapter{std::string(file.metadata().text("general.architecture")),
                  float(file.metadata().real("adapter.lora.alpha")),
                  {}};
  if (!std::isfinite(adapter.alpha) || adapter.alpha == 0)
    fail(file, "adapter.lora.alpha: wanted a finite number other than 0");
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string name(tensor.name);
    if (name.ends_with(ending_of_b)) continue;  // read beside its A
    if (!name.ends_with(ending_of_a))
      fail(file, printable(name) + ": wanted a name that ends in .lora_a or .lora_b");
    const std::string weight = name.substr(0, name.size() - ending_of_a.size());
    adapter.changes.push_back(
        {weight, finite_matrix(file, tensor),
         finite_matrix(file, file.tensor(weight + std::string(ending_of_b)))});
    const std::size_t r = adapter.changes.back().a.shape(0);
    if (r == 0 || adapter.changes.back().b.shape(1) != r)
      fail(file, fmt::format("{}: wanted one rank of at least 1 in A and B, got {} and {}",
                             printable(weight), r, adapter.changes.back().b.shape(1)));
  }
  if (adapter.changes.empty() || file.tensors().size() != 2 * adapter.changes.size())
    fail(file, fmt::format("wanted an A and a B for each of at least one matrix, got {} tensors",
                           file.tensors().size()));
  return adapter;
}

void save_adapter(const std::filesystem::path& path, const Adapter& adapter) {
  GgufBytes entries;
  entries.entry("general.type", "adapter").entry("general.architecture", adapter.architecture);
  entries.entry("adapter.type", "lora").entry("adapter.lora.alpha", adapter.alpha);
  std::vector<StoredTensor> tensors;
  const auto add = [&](const std::string& weight, std::string_view ending, const Tensor<2>& x) {
    tensors.push_back(
        {weight + std::string(ending), {x.shape(0), x.shape(1)}, {{x.data(), x.size()}}});
  };
  for (const LowRank& change : adapter.changes) {
    add(change.weight, ending_of_a, change.a);
    add(change.weight, ending_of_b, change.b);
  }
  save_gguf(path, entries, tensors);
}

void add_change(const LowRank& change, float alpha, ConstMatrix base, Matrix to) {
  expect_shape("base", base, {to.rows, to.cols});
  expect_shape(change.weight + ": A", change.a, {change.a.shape(0), to.cols});
  expect_shape(change.weight + ": B", change.b, {to.rows, change.a.shape(0)});
  const Tensor<2> scaled = alpha / float(change.a.shape(0)) * change.b;
  std::copy_n(base.data, base.rows * base.cols, to.data);
  add_matmul(scaled, change.a, to);
}

Model with_adapter(Model model, const Adapter& adapter) {
  const Config config = model.config();
  const std::string_view architecture = architecture_name(config.block);
  if (adapter.architecture != architecture)
    throw std::invalid_argument(fmt::format("the adapter: wanted one for {}, got one for {}",
                                            architecture, printable(adapter.architecture)));
  ModelWeights weights = std::move(model).release();
  std::vector<std::pair<const LowRank*, Weight*>> pairs;
  for_each_tensor(weights, config, [&]<class Stored>(const TensorInfo& info, Stored& tensor) {
    if (info.size() == 0 || info.expert) return;
    if constexpr (std::is_same_v<Stored, Weight>) {
      const std::string name = name_in_file(info);
      const auto found = std::ranges::find(adapter.changes, name, &LowRank::weight);
      if (found == adapter.changes.end()) return;
      if (tensor.is_packed())
        throw std::invalid_argument("the adapter: wanted a model of floats, got packed weights");
      expect_shape(name + ": A", found->a, {found->a.shape(0), info.cols});
      expect_shape(name + ": B", found->b, {info.rows, found->a.shape(0)});
      pairs.emplace_back(&*found, &tensor);
    }
  });
  for (const LowRank& change : adapter.changes)
    if (std::ranges::find(pairs, &change, &std::pair<const LowRank*, Weight*>::first) ==
        pairs.end())
      throw std::invalid_argument("the adapter: the model has no matrix " +
                                  printable(change.weight));
  for (const auto& [change, weight] : pairs) {
    add_change(*change, adapter.alpha, weight->floats(), weight->floats());
    if (!all_finite(weight->floats()))
      throw std::invalid_argument("the adapter: its change of " + printable(change->weight) +
                                  " is too large for a float");
  }
  return Model(config, std::move(weights));
}

}  // namespace t2t
