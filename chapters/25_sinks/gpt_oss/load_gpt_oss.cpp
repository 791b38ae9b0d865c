#include "25_sinks/gpt_oss/load_gpt_oss.hpp"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "10_pretrained/file/file_values.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "12_quantization/packed/half_weight.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "25_sinks/mxfp4/mxfp4_weight.hpp"
#include "memory.hpp"

namespace t2t {

bool is_gpt_oss(const GgufFile& file) { return is_of_architecture(file, "gpt-oss"); }

/// YaRN's settings; a factor of 1 without it.
static YarnScaling read_yarn(const FileValues& values) {
  const std::string type = values.text("rope.scaling.type", "none");
  if (type == "none") return {.factor = 1};
  if (type != "yarn") values.fail("rope.scaling.type", "wanted none or yarn, got " + type);
  return {.factor = values.number("rope.scaling.factor"),
          .fast = values.number("rope.scaling.yarn_beta_fast", 32),
          .slow = values.number("rope.scaling.yarn_beta_slow", 1),
          .trained = values.size("rope.scaling.original_context_length", 4096)};
}

Config read_gpt_oss_config(const GgufFile& file) {
  const FileValues values(file, "gpt-oss");
  GptOssSizes sizes{};
  std::tie(sizes.C, sizes.H, sizes.G, sizes.D) = values.head_sizes();
  sizes.L = values.size("block_count");
  sizes.V = values.vocabulary();
  sizes.T_max = values.size("context_length");
  sizes.window = values.size("attention.sliding_window");
  sizes.period = values.size("attention.sliding_window_pattern", 2);
  sizes.theta = values.number("rope.freq_base", 150000);
  sizes.yarn = read_yarn(values);
  sizes.eps = float(values.number("attention.layer_norm_rms_epsilon"));
  values.expect_width_of_a_head("rope.dimension_count", sizes.D);
  values.expect_width_of_a_head("attention.value_length", sizes.D);
  values.expect_blocks(sizes.L);
  try {
    Config config = gpt_oss_config(sizes);
    expect_config(config);
    return config;
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
}

/// A tensor's name in these files. Only the name of the norm before the experts is another than
/// chapter 10's.
static std::string name_here(const TensorInfo& info) {
  if (info.name == "feed_forward_norm.gain")
    return fmt::format("blk.{}.post_attention_norm.weight", info.layer.value());
  return name_in_file(info);
}

/// Reads tensors and remembers their names, to find those that are surplus.
class GptOssReader {
 public:
  GptOssReader(const GgufFile& file, ExpertProducts products) : file_(file), products_(products) {}

  Tensor<1> vector(const std::string& name, std::size_t size) {
    read_.insert(name);
    return file_.vector(name, size);
  }
  Weight matrix(const std::string& name, std::size_t rows, std::size_t cols) {
    const GgufTensor& tensor = whole(name, {rows, cols});
    Weight weight = weight_of(tensor, rows, cols);
    file_.forget(tensor);
    return weight;
  }
  /// A tensor with one matrix for each expert, or one vector.
  const GgufTensor& whole(const std::string& name, const std::vector<std::size_t>& shape) {
    read_.insert(name);
    return file_.tensor(name, shape);
  }
  Weight weight_of(const GgufTensor& tensor, std::size_t rows, std::size_t cols) const {
    if (tensor.type == TensorType::f16 || tensor.type == TensorType::bf16)
      return half_weight(tensor.type, tensor.bytes, rows, cols);
    if (tensor.type != TensorType::mxfp4) return Weight(floats_of(tensor, rows, cols));
    try {
      if (products_ == ExpertProducts::floats) return mxfp4_weight(tensor.bytes, rows, cols);
      const std::vector<std::uint8_t> blocks = mxfp4_as_q8_0(tensor.bytes, rows, cols);
      return packed_weight(pack_rows(TensorType::q8_0, blocks, rows, cols));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", printable(tensor.name), error.what()));
    }
  }
  void expect_all_read() const {
    for (const GgufTensor& tensor : file_.tensors())
      if (!read_.contains(tensor.name))
        throw std::invalid_argument("surplus tensor: " + printable(tensor.name));
    file_.expect_whole();
  }

 private:
  const GgufFile& file_;
  ExpertProducts products_;
  std::set<std::string, std::less<>> read_;
};

static ClampedExperts read_clamped_experts(const GgufFile& file, GptOssReader& reader,
                                           std::size_t l, std::size_t C) {
  const FileValues values(file, "gpt-oss");
  const std::size_t E = values.size("expert_count"), F = values.size("expert_feed_forward_length");
  const auto name = [&](const char* part) { return fmt::format("blk.{}.ffn_{}", l, part); };
  ClampedExperts mixture;
  mixture.chosen = values.size("expert_used_count");
  Tensor<2> router = floats_of(reader.whole(name("gate_inp.weight"), {E, C}), E, C);
  mixture.router = std::move(router);
  mixture.b_router = reader.vector(name("gate_inp.bias"), E);
  const auto add = [&](const char* part, std::size_t rows, std::size_t cols,
                       Weight ClampedExpert::*weight, Tensor<1> ClampedExpert::*bias) {
    const std::string full = name(part);
    const GgufTensor& weights = reader.whole(full + ".weight", {E, rows, cols});
    const Tensor<2> biases = floats_of(reader.whole(full + ".bias", {E, rows}), E, rows);
    mixture.experts.resize(E);
    for (std::size_t e = 0; e < E; ++e) {
      mixture.experts[e].*weight = reader.weight_of(rows_of(weights, e * rows, rows), rows, cols);
      mixture.experts[e].*bias = xt::row(biases, long(e));
    }
    file.forget(weights);
  };
  add("gate_exps", F, C, &ClampedExpert::w_gate, &ClampedExpert::b_gate);
  add("up_exps", F, C, &ClampedExpert::w_up, &ClampedExpert::b_up);
  add("down_exps", C, F, &ClampedExpert::w_down, &ClampedExpert::b_down);
  return mixture;
}

/// Bytes that the weights take.
static double bytes_wanted(const GgufFile& file, ExpertProducts products) {
  double sum = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const BlockLayout block = block_layout(tensor.type);
    double of_weight = sizeof(float);
    if (tensor.type == TensorType::f16 || tensor.type == TensorType::bf16) of_weight = 2;
    if (tensor.type == TensorType::mxfp4)
      of_weight = (products == ExpertProducts::floats ? 17 : 34) / 32.0;
    sum += double(tensor.size) / double(block.bytes) * double(block.numbers) * of_weight;
  }
  return sum;
}

static GptOss read_all(const GgufFile& file, const Config& config, ExpertProducts products) {
  GptOssReader reader(file, products);
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config, [&](const TensorInfo& info, auto& tensor) {
    if (info.size() == 0) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(tensor)>, Weight>)
      tensor = reader.matrix(name_here(info), info.rows, info.cols);
    else
      tensor = reader.vector(name_here(info), info.rows);
  });
  std::vector<GptOssLayer> layers(config.L);
  for (std::size_t l = 0; l < config.L; ++l) {
    const auto name = [&](const char* part) { return fmt::format("blk.{}.attn_{}", l, part); };
    layers[l].sinks = reader.vector(name("sinks.weight"), config.block.H);
    layers[l].b_o = reader.vector(name("output.bias"), config.block.C);
    layers[l].experts = read_clamped_experts(file, reader, l, config.block.C);
  }
  reader.expect_all_read();
  GptOss gpt_oss{Model(config, std::move(weights)), std::move(layers)};
  expect_gpt_oss(gpt_oss);
  return gpt_oss;
}

GptOss read_gpt_oss(const GgufFile& file, ExpertProducts products) {
  const Config config = read_gpt_oss_config(file);
  expect_memory(bytes_wanted(file, products), file.name(), "use a smaller model");
  try {
    return read_all(file, config, products);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
}

}  // namespace t2t
