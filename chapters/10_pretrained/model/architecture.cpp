#include "10_pretrained/model/architecture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <vector>

#include "03_rope/scaling/rope_scaling.hpp"
#include "10_pretrained/file/file_values.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

/// What a file of Gemma does not say: its program knows it.
struct Gemma {
  std::size_t pattern;        // of so many blocks the last sees all keys, the others a window
  float theta_in_windows;     // RoPE's in blocks with a window; 0: that of all blocks
  std::size_t blocks_of_27b;  // L of the model that divides q·k by √(C/H), not by √D
};
static constexpr Gemma gemma2 = {2, 0, 46}, gemma3 = {6, 10000, 62};

/// Whether the blocks of an architecture have experts.
enum class Experts { none, some, all };
/// Which norms q and k have: none, one for each head, or one for all heads.
enum class HeadNorms { none, each, together };

// [architectures]
/// What differs between the architectures.
struct Architecture {
  std::string_view name;  // general.architecture, with which its keys begin
  Pairing pairing;        // of q and k, as the rows of their weights lie in its files
  Biases biases;
  HeadNorms head_norms;
  Experts experts = Experts::none;  // some: in some files
  const Gemma* gemma = nullptr;     // what its files leave out
};
static constexpr Architecture architectures[] = {
    {"llama", Pairing::neighbours, Biases::none, HeadNorms::none, Experts::some},
    {"granite", Pairing::neighbours, Biases::none, HeadNorms::none},
    {"granitemoe", Pairing::neighbours, Biases::none, HeadNorms::none, Experts::all},
    {"qwen2", Pairing::halves, Biases::qkv, HeadNorms::none},
    {"qwen2moe", Pairing::halves, Biases::qkv, HeadNorms::none, Experts::all},
    {"qwen3", Pairing::halves, Biases::none, HeadNorms::each},
    {"qwen3moe", Pairing::halves, Biases::none, HeadNorms::each, Experts::all},
    {"olmoe", Pairing::halves, Biases::none, HeadNorms::together, Experts::all},
    {"gemma2", Pairing::halves, Biases::none, HeadNorms::none, Experts::none, &gemma2},
    {"gemma3", Pairing::halves, Biases::none, HeadNorms::each, Experts::none, &gemma3},
};
// [/architectures]

static const Architecture& architecture_of(const GgufFile& file) {
  const std::string_view name = file.metadata().text("general.architecture");
  const auto found = std::ranges::find(architectures, name, &Architecture::name);
  if (found != std::end(architectures)) return *found;
  std::vector<std::string_view> known;
  for (const Architecture& one : architectures) known.push_back(one.name);
  throw std::runtime_error(fmt::format("{}: general.architecture: wanted one of {}, got {}",
                                       file.name(), fmt::join(known, ", "), printable(name)));
}

std::string model_key(const GgufFile& file, std::string_view key) {
  return fmt::format("{}.{}", architecture_of(file).name, key);
}

static HeadNorms head_norms_of(const BlockSettings& settings) {
  if (!settings.head_norms) return HeadNorms::none;
  return settings.heads_together ? HeadNorms::together : HeadNorms::each;
}

std::string_view architecture_name(const BlockSettings& settings) {
  for (const Architecture& each : architectures)
    if (each.pairing == settings.pairing && each.biases == settings.biases &&
        each.head_norms == head_norms_of(settings) &&
        each.experts != (settings.experts > 0 ? Experts::none : Experts::all) &&
        bool(each.gemma) == (settings.norm_place == NormPlace::both))
      return each.name;
  throw std::invalid_argument("no architecture that is read here has these choices");
}

/// What all frequencies are divided by: 1, or the factor of linear scaling. Refuses RoPE on a part
/// of each head, and scalings other than this and rope_freqs.weight.
static double linear_factor(const GgufFile& file, const FileValues& values, std::size_t D) {
  const auto key = [&](const char* name) { return values.full(name); };
  values.expect_width_of_a_head("rope.dimension_count", D);
  const std::string type = key("rope.scaling.type");
  if (file.metadata().has(type) && file.metadata().text(type) == "linear") {
    const double factor = file.metadata().real(key("rope.scaling.factor"));
    if (std::isfinite(factor) && factor >= 1) return factor;
    throw std::runtime_error(fmt::format("{}: {}: wanted a number from 1 on, got {}", file.name(),
                                         key("rope.scaling.factor"), factor));
  }
  if (file.metadata().has(type) && file.metadata().text(type) != "none")
    throw std::runtime_error(fmt::format("{}: {}: wanted none or linear, got {}", file.name(), type,
                                         printable(file.metadata().text(type))));
  // Without a type these keys mean linear scaling; the values 0 and 1 mean none.
  for (const char* name : {"rope.scaling.factor", "rope.scale_linear"}) {
    const double factor = file.metadata().real(key(name), 1);
    if (!file.metadata().has(type) && factor != 0 && factor != 1)
      throw std::runtime_error(
          fmt::format("{}: {}: wanted 1, got {}", file.name(), key(name), factor));
  }
  return 1;
}

/// The frequencies, if they are scaled: divided by the factor of linear scaling, or by the factors
/// that the file stores for Llama 3's.
static Frequencies read_frequencies(const GgufFile& file, const FileValues& values,
                                    const BlockSettings& block) {
  const char* name = "rope_freqs.weight";
  const double factor = linear_factor(file, values, block.D);
  Frequencies frequencies = rope_frequencies(block.D, double(block.theta));  // [D/2]
  if (!file.has_tensor(name))
    return factor == 1 ? Frequencies{} : linear_scaling(frequencies, factor);
  if (factor != 1)
    throw std::runtime_error(
        fmt::format("{}: {}: wanted none beside linear scaling, got one", file.name(), name));
  const Tensor<1> factors = file.vector(name, block.D / 2);  // [D/2]
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    if (!(factors(i) > 0) || std::isinf(factors(i)))
      throw std::runtime_error(fmt::format("{}: {}: wanted numbers above 0, got {} at {}",
                                           file.name(), name, factors(i), i));
    frequencies[i] /= double(factors(i));
  }
  return frequencies;
}

// [granite]
/// The choices of Granite. What each sublayer adds is multiplied by one factor r there. Here the
/// whole stream is 1/r times as large instead: the embedding is divided by r, and eps by r², so
/// that all norms give the same.
static void choose_as_granite(const GgufFile& file, Config& config) {
  const auto factor = [&](const char* name) {
    const std::string key = model_key(file, name);
    const double value = file.metadata().real(key, 1);
    if (!(value > 0) || !std::isfinite(float(value)) || float(value) == 0)
      throw std::runtime_error(
          fmt::format("{}: {}: wanted a number above 0, got {}", file.name(), key, value));
    return value;
  };
  const double added = factor("residual_scale");
  config.embedding_scale = float(factor("embedding_scale") / added);
  config.block.eps = float(double(config.block.eps) / (added * added));
  if (file.metadata().has(model_key(file, "attention.scale")))
    config.block.score_scale = float(factor("attention.scale"));
  config.logit_scale = float(1 / factor("logit_scale"));
}
// [/granite]

// [gemma]
/// The choices that Gemma's blocks and its model share.
static void choose_as_gemma(const GgufFile& file, const Gemma& gemma, Config& config) {
  const auto cap = [&](const char* name) {
    return float(file.metadata().real(model_key(file, name), 0));
  };
  BlockSettings& block = config.block;
  block.norm_place = NormPlace::both;
  block.activation = Activation::geglu_tanh;
  block.score_cap = cap("attn_logit_softcapping");
  if (config.L == gemma.blocks_of_27b)
    block.score_scale = 1 / std::sqrt(float(block.C) / float(block.H));
  config.embedding_scale = std::sqrt(float(block.C));
  config.logit_cap = cap("final_logit_softcapping");
}

/// The window becomes that of some blocks, which RoPE then rotates by frequencies of their own.
static void alternate(const Gemma& gemma, Config& config) {
  if (config.block.window == 0) return;
  BlockSettings in_window = config.block;
  if (gemma.theta_in_windows > 0)
    in_window.theta = gemma.theta_in_windows, in_window.frequencies = {};
  config.block.window = 0;
  for (std::size_t l = 0; l < config.L; ++l)
    config.layers.push_back((l + 1) % gemma.pattern == 0 ? config.block : in_window);
}
// [/gemma]

/// The sizes of experts, and what their architecture leaves to programs to know: in Qwen 2 and
/// OLMoE the weights of a token's experts do not add up to 1, and Qwen 2 has a shared network with
/// a gate.
static void read_experts(const FileValues& values, const Architecture& architecture,
                         Config& config) {
  BlockSettings& block = config.block;
  if (architecture.experts == Experts::none) return;
  if (architecture.experts == Experts::all || values.has("expert_count"))
    block.experts =
        values.size("expert_count", {}, architecture.experts == Experts::all);  // 0: none
  if (block.experts == 0) return;
  block.chosen = values.size("expert_used_count");
  block.F = values.size("expert_feed_forward_length", block.F);
  block.normalized = architecture.name != "qwen2moe" && architecture.name != "olmoe";
  if (architecture.name != "qwen2moe") return;
  block.shared_gate = true;
  block.shared = values.size("expert_shared_feed_forward_length");
}

Config read_config(const GgufFile& file) {
  const Architecture& architecture = architecture_of(file);
  const FileValues values(file, architecture.name);
  const auto key = [&](const char* name) { return values.full(name); };
  Config config{};
  BlockSettings& block = config.block;
  std::tie(block.C, block.H, block.G, block.D) = values.head_sizes();
  block.F = values.size("feed_forward_length");
  config.L = values.size("block_count");
  config.T_max = values.size("context_length");
  config.V = values.vocabulary();
  config.tied = !file.has_tensor("output.weight");

  block.pairing = architecture.pairing;
  block.biases = architecture.biases;
  block.head_norms = architecture.head_norms != HeadNorms::none;
  block.heads_together = architecture.head_norms == HeadNorms::together;
  block.window = values.size("attention.sliding_window", 0, 0);  // 0: none
  read_experts(values, architecture, config);
  block.theta = float(file.metadata().real(key("rope.freq_base"), 10000));
  block.eps = float(file.metadata().real(key("attention.layer_norm_rms_epsilon")));
  if (architecture.gemma) choose_as_gemma(file, *architecture.gemma, config);
  if (architecture.name.starts_with("granite")) choose_as_granite(file, config);
  try {
    expect_config(config);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", file.name(), error.what()));
  }
  block.frequencies = read_frequencies(file, values, block);
  values.expect_blocks(config.L);
  if (architecture.gemma) alternate(*architecture.gemma, config);
  return config;
}

std::string model_name(const GgufFile& file) {
  const char* key = "general.name";
  return file.metadata().has(key) ? printable(file.metadata().text(key)) : "without a name";
}

}  // namespace t2t
