// What must be true of a model that is written to a file: it is read back as it was, bit by bit.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/gguf_bytes.hpp"
#include "10_pretrained/load_model.hpp"
#include "10_pretrained/save_model.hpp"
#include "10_pretrained/tiny_model.hpp"
#include "10_pretrained/tokenizer.hpp"
#include "apart.hpp"
#include "files.hpp"
#include "hashed_weights.hpp"
#include "ids.hpp"
#include "memory.hpp"
#include "refuses.hpp"

using namespace t2t;
using Bytes = std::vector<std::uint8_t>;

namespace {
/// A folder that is gone when the test ends.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_save_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path), {});
  }
};
}  // namespace

/// Letters, what three merges make of them, and a special token of each kind: 13 tokens.
static BpeTables small_tokenizer() {
  BpeTables tables;
  tables.name = "small", tables.pre_tokenizer = "gpt-2";
  tables.tokens = {"a",   "b",  "c",         "d",       "e",     "Ġ",    "ab",
                   "abc", "Ġd", "<|begin|>", "<|end|>", "<tab>", "spare"};
  tables.kinds.assign(9, TokenKind::normal);
  for (const TokenKind kind :
       {TokenKind::control, TokenKind::control, TokenKind::added, TokenKind::unused})
    tables.kinds.push_back(kind);
  tables.merges = {"a b", "ab c", "Ġ d"};
  tables.bos = 9, tables.eos = 10, tables.bos_first = true;
  return tables;
}

/// Sizes that are all different, and nothing at its default.
static Config small_config(std::string_view architecture, bool tied) {
  Config config{.block = {.C = 20, .H = 4, .G = 2, .D = 6, .F = 28},
                .L = 3,
                .V = 13,
                .T_max = 17,
                .tied = tied};
  config.block.theta = 777, config.block.eps = 0.25f, config.block.window = 5;
  if (architecture == "llama") return config;
  config.block.pairing = Pairing::halves;
  config.block.head_norms = architecture == "qwen3";
  if (architecture == "qwen2") config.block.biases = Biases::qkv;
  return config;
}

/// Other numbers in each tensor, and a few that only their bits tell from others.
static ModelWeights small_weights(const Config& config) {
  ModelWeights weights;
  weights.blocks.resize(config.L);
  for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
    fill_numbers(info, 100 * std::uint32_t(info.layer.value_or(9)), tensor);
  });
  Tensor<2>& embedding = weights.embedding.floats();
  embedding(0, 0) = -0.0f, embedding(0, 1) = std::numeric_limits<float>::denorm_min();
  embedding(0, 2) = std::bit_cast<float>(0x7fc01234u), embedding(0, 3) = 0x1.fffffep127f;
  return weights;
}

/// Does what may throw. What goes wrong becomes a failed check, and nothing.
template <class Call>
static auto tried(Call call) -> std::optional<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& error) {
    CHECK_MESSAGE(false, error.what());
    return std::nullopt;
  }
}

static void check_same(const Config& got, const Config& want) {
  const BlockSettings &a = got.block, &b = want.block;
  CHECK(a.C == b.C);
  CHECK(a.H == b.H);
  CHECK(a.G == b.G);
  CHECK(a.D == b.D);
  CHECK(a.F == b.F);
  CHECK(a.norm == b.norm);
  CHECK(a.norm_place == b.norm_place);
  CHECK(a.head_norms == b.head_norms);
  CHECK(a.activation == b.activation);
  CHECK(a.biases == b.biases);
  CHECK(a.window == b.window);
  CHECK(a.uses_rope == b.uses_rope);
  CHECK(a.pairing == b.pairing);
  CHECK(a.theta == b.theta);
  CHECK(a.frequencies == b.frequencies);
  CHECK(a.eps == b.eps);
  CHECK(got.L == want.L);
  CHECK(got.V == want.V);
  CHECK(got.T_max == want.T_max);
  CHECK(got.tied == want.tied);
  CHECK(got.learned_positions == want.learned_positions);
  CHECK(got.layers.size() == want.layers.size());
}

static void check_same_bits(const ModelWeights& got, const ModelWeights& want,
                            const Config& config) {
  const std::vector<NamedShape> names = tensor_names(config);
  const std::vector<ConstRow> a = values_of(got, config), b = values_of(want, config);
  CHECK(a.size() == names.size());
  CHECK(b.size() == names.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    CAPTURE(names[i].name);
    CHECK(a[i].size() == b[i].size());
    CHECK(std::memcmp(a[i].data(), b[i].data(), std::min(a[i].size_bytes(), b[i].size_bytes())) ==
          0);
  }
}

TEST_CASE("a saved model is read back with the same Config, the same bits and the same tokens") {
  const Folder folder;
  for (const char* architecture : {"llama", "qwen2", "qwen3"})
    for (const bool tied : {false, true}) {
      CAPTURE(architecture);
      CAPTURE(tied);
      const Config config = small_config(architecture, tied);
      const ModelWeights weights = small_weights(config);
      const std::filesystem::path path = folder.path / "model.gguf";
      tried([&] { return save_model(path, config, weights, small_tokenizer(), "small"), true; });
      const auto file = tried([&] { return GgufFile::open(path); });
      if (!file) continue;
      if (const auto read = tried([&] { return read_config(*file); })) check_same(*read, config);
      if (const auto read = tried([&] { return read_weights(*file, config); }))
        check_same_bits(*read, weights, config);
      const Bpe bpe(small_tokenizer());
      if (const auto read = tried([&] { return read_tokenizer(*file); }))
        CHECK(read->encode("abc ab d<tab>") == bpe.encode("abc ab d<tab>"));
      CHECK(model_name(*file) == "small");
      CHECK(folder.files() == 1);
    }
}

TEST_CASE("what a file can't express is refused, and an older file stays") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "model.gguf";
  write_file(path, "older");
  const Config good = small_config("llama", false);
  const auto save = [&](const Config& config, const BpeTables& tokenizer) {
    save_model(path, config, small_weights(config), tokenizer, "small");
  };
  const auto changed = [&](auto change) {
    Config config = good;
    change(config);
    return config;
  };
  REFUSES(
      save(changed([](Config& c) { c.block.norm_place = NormPlace::after; }), small_tokenizer()),
      "the model to save: wanted one without norms after the parts");
  REFUSES(save(changed([](Config& c) {
                 c.block.frequencies = {1, 2, 3};
               }),
               small_tokenizer()),
          "the model to save: wanted one without scaled frequencies");
  REFUSES(save(changed([](Config& c) {
                 c.layers = {c.block, c.block, c.block};
               }),
               small_tokenizer()),
          "the model to save: wanted one without layers that differ");
  BpeTables fewer = small_tokenizer();
  fewer.tokens.pop_back(), fewer.kinds.pop_back();
  REFUSES(save(good, fewer), "tokens: wanted V = 13, got 12");
  ModelWeights short_of_one = small_weights(good);
  short_of_one.blocks.pop_back();
  REFUSES(save_model(path, good, short_of_one, small_tokenizer(), "small"),
          "blocks: wanted L = 3, got 2");
  CHECK(read_file(path) == "older");
  CHECK(folder.files() == 1);
}
