// What must be true of a model that is written to a file: it is read back as it was, bit by bit.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "support/apart.hpp"
#include "support/hashed_weights.hpp"
#include "support/lists.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

namespace t2t::save_test {

using Bytes = std::vector<std::uint8_t>;

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
  tables.eot = 11, tables.eom = 12;
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
  ModelWeights weights = room_for(config);
  for_each_tensor(weights, config, [](const TensorInfo& info, auto& tensor) {
    const std::size_t expert = info.expert ? *info.expert + 1 : 0;
    fill_numbers(info, std::uint32_t(100 * info.layer.value_or(9) + 1000 * expert), tensor);
  });
  float* first = weights.embedding.floats().data();
  first[0] = -0.0f, first[1] = std::numeric_limits<float>::denorm_min();
  first[2] = std::bit_cast<float>(0x7fc01234u), first[3] = 0x1.fffffep127f;
  return weights;
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
  CHECK(a.experts == b.experts);
  CHECK(a.chosen == b.chosen);
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
  const std::vector<StoredTensor> a = stored_tensors(got, config), b = stored_tensors(want, config);
  CHECK(a.size() == names.size());
  CHECK(b.size() == names.size());
  for (std::size_t i = 0; i < std::min({a.size(), b.size(), names.size()}); ++i) {
    CAPTURE(names[i].name);
    CHECK(a[i].name == names[i].name);
    CHECK(a[i].shape == names[i].shape);
    CHECK(a[i].pieces.size() == b[i].pieces.size());
    for (std::size_t p = 0; p < std::min(a[i].pieces.size(), b[i].pieces.size()); ++p) {
      const ConstRow x = a[i].pieces[p], y = b[i].pieces[p];
      CHECK(x.size() == y.size());
      CHECK(std::memcmp(x.data(), y.data(), std::min(x.size_bytes(), y.size_bytes())) == 0);
    }
  }
}

static void check_same(const BpeTables& got, const BpeTables& want) {
  CHECK(got.pre_tokenizer == want.pre_tokenizer);
  CHECK(got.tokens == want.tokens);
  CHECK((got.kinds == want.kinds));
  CHECK(got.merges == want.merges);
  CHECK(got.bos == want.bos);
  CHECK(got.eos == want.eos);
  CHECK(got.eot == want.eot);
  CHECK(got.eom == want.eom);
  CHECK(got.bos_first == want.bos_first);
}

TEST_CASE("by hand: each tensor begins at a multiple of 32 bytes, its sizes innermost first") {
  const Config config{
      .block = {.C = 3, .H = 1, .G = 1, .D = 2, .F = 5}, .L = 1, .V = 13, .T_max = 7};
  const ModelWeights weights = small_weights(config);
  const Bytes bytes = model_bytes(config, weights, small_tokenizer(), "by hand");
  const std::optional<GgufFile> file = tried([&] { return GgufFile("x", bytes); });
  if (!file) return;
  // embedding, norm, q, k, v, o, norm, gate, up, down, norm, head: 156, 12, 24, 24, 24, 24, 12, 60,
  // 60, 60, 12 and 156 bytes.
  const std::size_t offsets[] = {0, 160, 192, 224, 256, 288, 320, 352, 416, 480, 544, 576};
  const std::uint8_t* begin = bytes.data() + bytes.size() - (576 + 160);
  CHECK(file->tensors().size() == 12);
  for (std::size_t i = 0; i < std::min<std::size_t>(12, file->tensors().size()); ++i) {
    CAPTURE(i);
    CHECK(file->tensors()[i].offset == offsets[i]);
    CHECK((file->tensors()[i].bytes.data() == begin + offsets[i]));
  }
  CHECK(bytes.size() % 32 == 0);
  CHECK(std::memcmp(begin, weights.embedding.floats().data(), 156) == 0);
  CHECK(std::all_of(begin + 156, begin + 160, [](std::uint8_t byte) { return byte == 0; }));
  CHECK(std::all_of(begin + 172, begin + 192, [](std::uint8_t byte) { return byte == 0; }));

  // w_q, [2, 3], in the directory: two sizes, 3 and 2; the type of F32; its offset.
  GgufBytes entry;
  entry.text("blk.0.attn_q.weight").put(2u).put(std::uint64_t(3)).put(std::uint64_t(2));
  entry.put(0u).put(std::uint64_t(192));
  CHECK((std::search(bytes.begin(), bytes.end(), entry.bytes.begin(), entry.bytes.end()) !=
         bytes.end()));
}

TEST_CASE("a model that is saved and read back has the same config, bits and tokens") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "model.gguf";
  for (const std::string architecture : {"llama", "qwen2", "qwen3"})
    for (const bool tied : {true, false}) {
      CAPTURE(architecture);
      CAPTURE(tied);
      const Config config = small_config(architecture, tied);
      const ModelWeights weights = small_weights(config);
      save_model(path, config, weights, small_tokenizer(), "small", "a template");
      const std::optional<GgufFile> file = tried([&] { return GgufFile::open(path); });
      if (!file) continue;
      CHECK(file->metadata().text("general.architecture") == architecture);
      CHECK(model_name(*file) == "small");
      CHECK(file->metadata().text("tokenizer.chat_template") == "a template");
      const std::optional<Model> model = tried([&] { return read_model(*file); });
      if (model) {
        check_same(model->config(), config);
        check_same_bits(model->weights(), weights, config);
      }
      const std::optional<BpeTables> tables = tried([&] { return read_tables(*file); });
      if (tables) check_same(*tables, small_tokenizer());
    }
}

TEST_CASE("a saved tokenizer merges as before, and knows its special tokens") {
  const Config config = small_config("llama", true);
  const Bytes bytes = model_bytes(config, small_weights(config), small_tokenizer(), "small");
  const GgufFile file("x", bytes);
  const std::optional<Bpe> bpe = tried([&] { return read_tokenizer(file); });
  if (!bpe) return;
  // By hand: the words are "abcab" and " d"; "ab" is merged twice, then the first one with c.
  CHECK(bpe->encode("abcab d") == Ids{7, 6, 8});
  CHECK(bpe->encode("a<tab>e") == Ids{0, 11, 4});
  CHECK(bpe->encode("ab<|end|>", SpecialTokens::as_tokens) == Ids{6, 10});
  CHECK(bpe->encode("ab<|end|>") == Ids{6, 4, 3});  // there are no tokens for <, |, n and >
  CHECK(bpe->first() == 9);
  CHECK(bpe->eos() == 10);
  CHECK(!file.metadata().has("tokenizer.chat_template"));
}

TEST_CASE("what a tokenizer leaves open stays open") {
  const Config config = small_config("llama", true);
  const ModelWeights weights = small_weights(config);
  for (const std::optional<bool> first : {std::optional<bool>(), {false}, {true}}) {
    BpeTables tokenizer = small_tokenizer();
    tokenizer.bos_first = first;
    tokenizer.eos.reset(), tokenizer.eot.reset(), tokenizer.eom.reset();
    if (!first) tokenizer.bos.reset();
    tokenizer.pre_tokenizer = "llama-bpe";
    const Bytes bytes = model_bytes(config, weights, tokenizer, "small");
    const GgufFile file("x", bytes);
    const std::optional<BpeTables> tables = tried([&] { return read_tables(file); });
    if (tables) check_same(*tables, tokenizer);
  }
  // A larger vocabulary.
  const BpeTables more = read_tables(GgufFile::open(T2T_FIXTURES "/tokenizer.gguf"));
  Config large = config;
  large.V = more.tokens.size();
  const Bytes bytes = model_bytes(large, small_weights(large), more, "small");
  const GgufFile file("x", bytes);
  const std::optional<BpeTables> tables = tried([&] { return read_tables(file); });
  if (tables) check_same(*tables, more);
}

TEST_CASE("other readers find the sizes that ours can do without") {
  Config config = small_config("qwen3", false);
  const ModelWeights weights = small_weights(config);
  const auto integers = [&](std::initializer_list<std::pair<std::string, std::int64_t>> wanted) {
    const Bytes bytes = model_bytes(config, weights, small_tokenizer(), "small");
    const GgufFile file("x", bytes);
    for (const auto& one : wanted) {
      CAPTURE(one.first);
      CHECK(file.metadata().integer(one.first, -1) == one.second);
    }
  };
  integers({{"general.file_type", 0},
            {"qwen3.vocab_size", 13},
            {"qwen3.rope.dimension_count", 6},
            {"qwen3.attention.key_length", 6},
            {"qwen3.attention.value_length", 6},
            {"qwen3.attention.sliding_window", 5}});
  config.block.window = 0;
  integers({{"qwen3.attention.sliding_window", -1}});  // there is no such key
}

TEST_CASE("a file is replaced whole; a model that is refused leaves the old one") {
  const Folder folder;
  const std::filesystem::path path = folder.path / "model.gguf";
  const Config config = small_config("llama", false);
  ModelWeights weights = small_weights(config);
  const BpeTables tokenizer = small_tokenizer();
  write_file(path, "what was there");
  save_model(path, config, weights, tokenizer, "small", "a template");
  const Bytes wanted = model_bytes(config, weights, tokenizer, "small", "a template");
  const std::string written = read_file(path);
  CHECK(std::ranges::equal(written, wanted, {}, [](char c) { return std::uint8_t(c); }));

  weights.blocks[2].feed_forward.w_down = xt::zeros<float>({28, 20});
  REFUSES(save_model(path, config, weights, tokenizer, "small"),
          "layer 2: w_down: wanted shape [20, 28], got [28, 20]");
  CHECK((read_file(path) == written));
  CHECK(folder.files() == 1);
  weights = small_weights(config);
  REFUSES_AS(save_model(folder.path, config, weights, tokenizer, "small"),
             folder.path.string() +
                 ": wanted a plain file or none, got a folder, a link or a "
                 "device; it stays as it is",
             std::runtime_error);
  CHECK(folder.files() == 1);
}

TEST_CASE("a mixture of experts: a block's experts are one tensor of the file, and come back") {
  Config config = small_config("llama", false);
  config.block.experts = 5, config.block.chosen = 2;
  const ModelWeights weights = small_weights(config);
  const std::vector<std::uint8_t> bytes =
      model_bytes(config, weights, small_tokenizer(), "a mixture");
  const GgufFile file("x", bytes);
  const std::size_t C = config.block.C, F = config.block.F;
  CHECK(file.tensor("blk.1.ffn_gate_exps.weight").shape == std::vector<std::size_t>{5, F, C});
  CHECK(file.tensor("blk.1.ffn_down_exps.weight").shape == std::vector<std::size_t>{5, C, F});
  CHECK(file.tensor("blk.1.ffn_gate_inp.weight").shape == std::vector<std::size_t>{5, C});
  CHECK_FALSE(file.has_tensor("blk.1.ffn_gate.weight"));
  const Model model = read_model(file);
  check_same(model.config(), config);
  check_same_bits(model.weights(), weights, config);

  // Whoever makes the weights gets each expert's rows alone.
  std::vector<std::string> made;
  read_weights(file, config, [&](const GgufTensor& tensor, const TensorInfo& info) {
    if (info.layer == 2u && info.name == "w_down") made.push_back(full_name(info));
    CHECK(tensor.shape == std::vector<std::size_t>{info.rows, info.cols});
    return Weight(floats_of(tensor, info.rows, info.cols));
  });
  const std::vector<std::string> experts = {
      "layer 2: expert 0: w_down", "layer 2: expert 1: w_down", "layer 2: expert 2: w_down",
      "layer 2: expert 3: w_down", "layer 2: expert 4: w_down"};
  CHECK(made == experts);

  // A file that claims two thousand million experts is refused before there is room for them.
  Bytes many = bytes;
  const std::string key = "llama.expert_count";
  const auto value = std::search(many.begin(), many.end(), key.begin(), key.end()) +
                     std::ptrdiff_t(key.size() + 4);  // after the value's type
  std::fill_n(value, 3, std::uint8_t(0xff)), value[3] = 0x7f;
  REFUSES_AS(read_model(GgufFile("x", many)),
             "x: blk.0.ffn_gate_inp.weight: wanted shape [2147483647, 20], got [5, 20]",
             std::runtime_error);

  ModelWeights one_fewer = weights;
  one_fewer.blocks[1].experts.pop_back();
  REFUSES(model_bytes(config, one_fewer, small_tokenizer(), "x"),
          "layer 1: experts: wanted E = 5, got 4");
  REFUSES(Model(config, std::move(one_fewer)), "experts: wanted E = 5, got 4");
  REFUSES(rows_of(file.tensor("blk.1.ffn_gate_inp.weight"), 3, 3),
          "blk.1.ffn_gate_inp.weight: wanted rows 3 to 6, got 5 rows");
}

TEST_CASE("choices and sizes that the file can't express are refused by name") {
  const Config config = small_config("llama", true);
  const auto refused = [&](auto change, const std::string& message) {
    Config other = config;
    change(other);
    Random random(1);
    const ModelWeights weights = draw_model(other, random);
    REFUSES(model_bytes(other, weights, small_tokenizer(), "small"), message);
  };
  const std::string without = "the model to save: wanted one without ";
  refused([](Config& c) { c.block.norm = Norm::layer; }, without + "norms other than RMSNorm");
  refused([](Config& c) { c.block.norm_place = NormPlace::after; }, without + "post-norm");
  for (const Activation other : {Activation::geglu, Activation::gelu_tanh})
    refused([&](Config& c) { c.block.activation = other; },
            without + "a feed-forward network other than SwiGLU");
  refused([](Config& c) { c.learned_positions = true; }, without + "learned positions");
  refused([](Config& c) { c.block.uses_rope = false; }, without + "attention without RoPE");
  refused([](Config& c) { c.block.frequencies = {1, 0.5, 0.25}; }, without + "scaled frequencies");
  refused([](Config& c) { c.layers.assign(3, c.block); }, without + "layers that differ");
  refused([](Config& c) { c.block.pairing = Pairing::halves; },
          "no architecture that is read here has these choices");
  refused([](Config& c) { c.block.F = 0; },
          "llama.feed_forward_length: wanted 1 to 2147483647, got 0");
  refused([](Config& c) { c.T_max = std::size_t(1) << 31; },
          "llama.context_length: wanted 1 to 2147483647, got 2147483648");
  refused([](Config& c) { c.block.window = (std::size_t(1) << 32) + 5; },
          "llama.attention.sliding_window: wanted 1 to 2147483647, got 4294967301");

  Config zero = config;
  zero.block.theta = 0;
  REFUSES(model_bytes(zero, small_weights(config), small_tokenizer(), "small"),
          "config: theta: wanted a number above 0, got 0");
}

TEST_CASE("weights that do not fit, or are packed, are refused by name") {
  const Config config = small_config("qwen2", false);
  const auto refused = [&](auto change, const std::string& message) {
    ModelWeights weights = small_weights(config);
    change(weights);
    REFUSES(model_bytes(config, weights, small_tokenizer(), "small"), message);
  };
  refused([](ModelWeights& w) { w.blocks.pop_back(); }, "blocks: wanted L = 3, got 2");
  refused([](ModelWeights& w) { w.head = Weight(); }, "head: wanted shape [13, 20], got [0, 0]");
  refused([](ModelWeights& w) { w.blocks[1].b_k = xt::zeros<float>({6}); },
          "layer 1: b_k: wanted shape [12], got [6]");
  refused([](ModelWeights& w) { w.blocks[1].q_norm.gain = xt::zeros<float>({6}); },
          "layer 1: q_norm.gain: wanted shape [0], got [6]");
  refused([](ModelWeights& w) { w.blocks[0].w_k = packed_nothing(12, 20); },
          "layer 0: w_k: wanted floats, got packed numbers");
}

TEST_CASE("a tokenizer that could not be read back is refused, and a name that is no text") {
  const Config config = small_config("llama", true);
  const ModelWeights weights = small_weights(config);
  using Bad = std::runtime_error;
  const auto saved = [&](auto change) {
    BpeTables tokenizer = small_tokenizer();
    change(tokenizer);
    return model_bytes(config, weights, tokenizer, "small");
  };
  REFUSES(saved([](BpeTables& t) { t.tokens.pop_back(), t.kinds.pop_back(); }),
          "tokens: wanted V = 13, got 12");
  REFUSES(saved([](BpeTables& t) { t = {}; }), "tokens: wanted V = 13, got 0");
  REFUSES_AS(saved([](BpeTables& t) { t.kinds.pop_back(); }), "small: 13 tokens with 12 types",
             Bad);
  REFUSES_AS(saved([](BpeTables& t) { t.eos = 13; }),
             "small: eos is token 13, outside a vocabulary of 13", Bad);
  REFUSES_AS(saved([](BpeTables& t) { t.tokens[12] = "\xff"; }),
             "token 12: byte 0xff at offset 0 is not UTF-8; save the text as UTF-8", Bad);
  REFUSES_AS(model_bytes(config, weights, small_tokenizer(), "sm\xffll"),
             "name: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8", Bad);
  REFUSES_AS(model_bytes(config, weights, small_tokenizer(), "small", "\x80"),
             "chat_template: byte 0x80 at offset 0 is not UTF-8; save the text as UTF-8", Bad);
}

#ifndef __SANITIZE_ADDRESS__  // which needs memory of its own
TEST_CASE("a model that fills the memory can be saved: no second copy is made") {
  const Folder folder;
  Config config = tiny_config();
  config.L = 100;  // 12 MB
  Random random(1);
  const ModelWeights weights = draw_model(config, random);
  const std::string ended = ending_apart([&] {
    omp_set_num_threads(1);  // a copied process has no other
    limit_memory();
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur -= rlim_t(free_memory() - 3e6);
    setrlimit(RLIMIT_DATA, &limit);
    save_model(folder.path / "x", config, weights, tiny_tokenizer(config.V), "large");
  });
  CHECK(ended == "returned");
  CHECK(std::filesystem::exists(folder.path / "x"));
}
#endif

}  // namespace t2t::save_test
