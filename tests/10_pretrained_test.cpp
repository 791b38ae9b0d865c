// What must be true of loading a model, of chats, perplexity and traces, without the real weights.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "03_rope/scaling/rope_scaling.hpp"
#include "09_language_model/language_model.hpp"
#include "09_language_model/loss.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/check/trace_file.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/tokenizer/unicode.hpp"
#include "files/files.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "memory.hpp"
#include "support/all_close.hpp"
#include "support/apart.hpp"
#include "support/packed_stand_ins.hpp"
#include "support/refuses.hpp"

namespace t2t::pretrained_test {

using Bad = std::runtime_error;

/// A model read from bytes. What goes wrong becomes a failed check, and nothing.
static std::optional<Model> load(const GgufFile& file) {
  try {
    return read_model(file);
  } catch (const std::exception& error) {
    CHECK_MESSAGE(false, error.what());
    return std::nullopt;
  }
}

/// Sizes that are all different, and nothing at its default.
static Config odd_config(bool tied, std::string_view architecture = "llama") {
  Config config{.block = {.C = 20, .H = 4, .G = 2, .D = 6, .F = 28},
                .L = 3,
                .V = 11,
                .T_max = 17,
                .tied = tied};
  config.block.theta = 777, config.block.eps = 0.25f;
  if (architecture == "llama") return config;
  config.block.pairing = Pairing::halves;
  config.block.head_norms = architecture == "qwen3";
  if (architecture == "qwen2") config.block.biases = Biases::qkv;
  return config;
}

TEST_CASE("a model that is written to a file and read back has the same config and tensors") {
  for (const auto& [tied, architecture] :
       {std::pair{true, "llama"}, {false, "llama"}, {true, "qwen2"}, {false, "qwen3"}}) {
    Random random(3);
    const Config config = odd_config(tied, architecture);
    CAPTURE(config.tied);
    CAPTURE(architecture_name(config.block));
    ModelWeights weights = draw_model(config, random);
    for_each_tensor(weights, config, [&]<class T>(const TensorInfo&, T& tensor) {
      if constexpr (std::is_same_v<T, Tensor<1>>) tensor = random.normal<1>({tensor.size()});
    });
    const std::vector<std::uint8_t> bytes = gguf_file(config, weights);
    const std::optional<Model> loaded = load(GgufFile("x", bytes));
    if (!loaded) continue;
    const Config& got = loaded->config();
    CHECK(got.tied == tied);
    CHECK(got.block.pairing == config.block.pairing);
    CHECK(got.block.theta == 777);
    CHECK(got.block.eps == 0.25f);
    CHECK(got.block.D == 6);
    CHECK(got.T_max == 17);
    const std::vector<StoredTensor> a = stored_tensors(loaded->weights(), config),
                                    b = stored_tensors(weights, config);
    CHECK(a.size() == b.size());
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      CAPTURE(b[i].name);
      CHECK(std::ranges::equal(a[i].pieces.at(0), b[i].pieces.at(0)));
    }
  }
}

TEST_CASE("the caller of read_model decides what matrices become; vectors become floats") {
  Random random(5);
  const Config config = odd_config(false);
  const ModelWeights weights = draw_model(config, random);
  const std::vector<std::uint8_t> bytes = gguf_file(config, weights);
  const GgufFile file("x", bytes);
  std::vector<std::string> asked;
  const Model packed = read_model(file, [&](const GgufTensor& tensor, const TensorInfo&) {
    asked.emplace_back(tensor.name);
    const std::size_t rows = tensor.shape[0], cols = tensor.shape[1];
    Tensor<2> floats = empty(rows, cols);
    dequantize_rows(tensor.type, tensor.bytes, floats);
    return doubled(floats, tensor.bytes.size());
  });
  CHECK(asked.size() == 2 + 3 * 7);
  CHECK(asked[1] == "blk.0.attn_q.weight");
  const std::vector<int> ids = {1, 5, 3};
  CHECK(all_close(language_model(ids, packed), language_model(ids, Model(config, weights)), 0));
  REFUSES(
      read_model(file, [](const GgufTensor&, const TensorInfo&) { return Weight(empty(2, 2)); }),
      "embedding: wanted shape [11, 20], got [2, 2]");
}

TEST_CASE("logits of small files of all architectures and types equal those of PyTorch") {
  struct Small {
    std::string name;
    std::size_t longest;  // sum of products
  };
  for (const auto& [name, longest] :
       {Small{"tiny", 160}, Small{"llama3", 96}, Small{"qwen2", 96}, Small{"qwen3", 96},
        Small{"qwen3_untied", 64}, Small{"k_quants", 256}, Small{"gemma2", 96},
        Small{"gemma3", 64}}) {
    const std::string file = T2T_FIXTURES "/" + name;
    CAPTURE(file);
    const std::optional<Model> loaded = load(GgufFile::open(file + ".gguf"));
    const Tensor<2> want = load_npy<2>(file + "_logits.npy");  // [19, V]
    const std::size_t V = want.shape(1);
    std::vector<int> ids;
    for (std::size_t t = 0; t < 19; ++t) ids.push_back(int((t * 11 + 3) % V));
    if (!loaded) continue;
    // Logits are of size 1: a sum of n products keeps eps·√n of that, some ten steps deep.
    const double bound = 0x1p-24 * double(longest);
    CHECK(all_close(language_model(ids, *loaded), want, bound));
    ModelState state(loaded->config(), 19, {.chunk = 7});
    Tensor<2> logits = empty(19, V);
    forward_all(*loaded, state, ids, logits);
    CHECK(all_close(logits, want, bound));

    // What --logits writes and an answer begins with: the last token's alone.
    reset(state);
    Tensor<2> last = empty(1, V);
    forward(*loaded, state, ids, row(last, 0));
    const Tensor<2> want_last = xt::view(want, xt::range(18, 19), xt::all());
    CHECK(all_close(last, want_last, bound));
  }
}

/// The tiny model's file with its directory or metadata changed by hand.
static std::vector<std::uint8_t> tiny_bytes() {
  Random random(1);
  const Config config = tiny_config();
  return gguf_file(config, draw_model(config, random));
}
static std::vector<std::uint8_t> replaced(std::string_view from, std::string_view to) {
  std::vector<std::uint8_t> bytes = tiny_bytes();
  const auto at = std::search(bytes.begin(), bytes.end(), from.begin(), from.end());
  CHECK(at != bytes.end());
  if (at != bytes.end()) std::copy(to.begin(), to.end(), at);
  return bytes;
}
/// One entry more.
template <class Value>
static std::vector<std::uint8_t> with_entry(std::string_view key, Value value) {
  GgufBytes entry;
  entry.entry(key, value);
  std::vector<std::uint8_t> bytes = tiny_bytes();
  ++bytes[16];  // the number of entries; the first begins at 24
  bytes.insert(bytes.begin() + 24, entry.bytes.begin(), entry.bytes.end());
  bytes.insert(bytes.end(), 32, 0);  // what lies behind begins at a multiple of 32
  return bytes;
}
static void expect_refused(const std::vector<std::uint8_t>& bytes, const std::string& message) {
  std::string got = "nothing";
  try {
    const GgufFile file("x", bytes);
    read_model(file);
  } catch (const std::exception& error) {
    got = error.what();
  }
  CHECK(got == message);
}

TEST_CASE("missing and surplus tensors are named, both at once") {
  expect_refused(replaced("blk.1.attn_k.weight", "blk.1.attn_K.weight"),
                 "x: missing tensors: blk.1.attn_k.weight; surplus tensors: blk.1.attn_K.weight");
  expect_refused(replaced("output_norm.weight", "output_form.weight"),
                 "x: missing tensors: output_norm.weight; surplus tensors: output_form.weight");
  // Factors of RoPE are surplus to a config without them.
  const GgufFile file = GgufFile::open(T2T_FIXTURES "/llama3.gguf");
  Config config = read_config(file);
  config.block.frequencies = {};
  REFUSES_AS(read_weights(file, config),
             T2T_FIXTURES "/llama3.gguf: surplus tensors: rope_freqs.weight", Bad);
}

TEST_CASE("metadata that does not fit is refused with its key or the tensor that it contradicts") {
  const auto with = [](std::string_view key, std::uint32_t value) {
    std::string from(key), to;
    const std::uint32_t kind = 4;
    from.append(reinterpret_cast<const char*>(&kind), 4);
    to = from;
    to.append(reinterpret_cast<const char*>(&value), 4);
    return replaced(from, to);
  };
  expect_refused(with("llama.block_count", 0),
                 "x: llama.block_count: wanted 1 to 2147483647, got 0");
  expect_refused(with("llama.block_count", 2000000),
                 "x: llama.block_count: 2000000, but there are 21 tensors");
  expect_refused(with("llama.block_count", 1),
                 "x: surplus tensors: blk.1.attn_norm.weight, blk.1.attn_q.weight, "
                 "blk.1.attn_k.weight, blk.1.attn_v.weight, blk.1.attn_output.weight and 4 more");
  expect_refused(with("llama.feed_forward_length", 95),
                 "x: blk.0.ffn_gate.weight: wanted shape [95, 64], got [96, 64]");
  expect_refused(with("llama.attention.head_count_kv", 3),
                 "x: config: H, the query heads: wanted a multiple of G = 3, got 4");
  expect_refused(replaced("general.architecture\x08", "general.architecturE\x08"),
                 "x: has no general.architecture, wanted a string");
  expect_refused(with_entry("llama.rope.scale_linear", 8.0f),
                 "x: llama.rope.scale_linear: wanted 1, got 8");
  expect_refused(with_entry("llama.rope.scaling.factor", 0.5f),
                 "x: llama.rope.scaling.factor: wanted 1, got 0.5");
  expect_refused(with_entry("llama.rope.scaling.factor", -1.0f),
                 "x: llama.rope.scaling.factor: wanted 1, got -1");
  for (const float none : {0.0f, 1.0f})
    expect_refused(with_entry("llama.rope.scaling.factor", none), "nothing");
  expect_refused(with_entry("qwen2.rope.scaling.factor", 8.0f), "nothing");  // another's key
  std::vector<std::uint8_t> other = replaced("llama", "gemma");
  expect_refused(
      other,
      "x: general.architecture: wanted one of llama, granite, granitemoe, qwen2, qwen2moe, qwen3, "
      "qwen3moe, olmoe, gemma2, gemma3, got gemma");
}

/// The config of a file with the keys of one of Gemma's models, and as many tensors as it wants to
/// have blocks: read_config looks at no more.
static Config gemma_config(const std::string& architecture, std::uint32_t L, std::uint32_t window,
                           const std::string& scaling = "none") {
  GgufBytes file;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  const std::vector<std::pair<const char*, std::uint32_t>> sizes = {
      {"embedding_length", 32},
      {"feed_forward_length", 16},
      {"context_length", 64},
      {"attention.head_count", 2},
      {"attention.head_count_kv", 1},
      {"attention.key_length", 8},
      {"attention.value_length", 8},
      {"attention.sliding_window", window},
      {"block_count", L}};
  file.header(L, sizes.size() + 5);
  file.entry("general.architecture", architecture);
  for (const auto& [name, size] : sizes) file.entry(key(name), size);
  file.entry(key("attention.layer_norm_rms_epsilon"), 0.5f);
  file.entry(key("rope.freq_base"), 3000.0f);
  file.entry(key("rope.scaling.type"), scaling).entry(key("rope.scaling.factor"), 8.0f);
  file.tensor("token_embd.weight", {32, 2}, 0, 0);
  for (std::uint32_t l = 1; l < L; ++l) file.tensor("t" + std::to_string(l), {32, 2}, 0, 256 * l);
  file.pad().raw(std::string(256 * L, '\0'));
  return read_config(GgufFile("x", file.bytes));
}

TEST_CASE("Gemma: which blocks see a window, their thetas, and what the largest models divide by") {
  const Config two = gemma_config("gemma2", 5, 9);
  CHECK(two.block.window == 0);
  for (std::size_t l = 0; l < 5; ++l) CHECK(settings_of(two, l).window == (l % 2 == 0 ? 9 : 0));
  CHECK(two.embedding_scale == std::sqrt(32.0f));
  CHECK(two.block.score_scale == 0);
  CHECK(gemma_config("gemma2", 5, 0).layers.empty());

  const Config three = gemma_config("gemma3", 13, 9, "linear");
  for (std::size_t l = 0; l < 13; ++l) {
    const BlockSettings& of_layer = settings_of(three, l);
    const bool all = l == 5 || l == 11;
    CHECK(of_layer.window == (all ? 0 : 9));
    CHECK(of_layer.theta == (all ? 3000 : 10000));
    CHECK(of_layer.frequencies ==
          (all ? linear_scaling(rope_frequencies(8, 3000), 8) : Frequencies{}));
    CHECK(of_layer.head_norms);
  }
  // C/H = 16, and D = 8.
  CHECK(gemma_config("gemma2", 46, 9).block.score_scale == 0.25f);
  CHECK(gemma_config("gemma3", 62, 9).layers[0].score_scale == 0.25f);
  CHECK(gemma_config("gemma3", 46, 9).block.score_scale == 0);
  REFUSES_AS(gemma_config("gemma3", 6, 9, "yarn"),
             "x: gemma3.rope.scaling.type: wanted none or linear, got yarn", Bad);
}

#ifndef __SANITIZE_ADDRESS__  // which needs memory of its own
/// How a call ends in a process of its own that can take only so many bytes more.
template <class Call>
static std::string ending_with(double bytes, Call call) {
  return ending_apart([&] {
    omp_set_num_threads(1);  // a copied process has no other
    limit_memory();
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur -= rlim_t(free_memory() - bytes);
    setrlimit(RLIMIT_DATA, &limit);
    call();
  });
}

TEST_CASE("a model that does not fit into memory is refused, unless it stays in the file") {
  Config config = tiny_config();
  config.L = 100, config.V = 200;  // 12 MB
  Random random(1);
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  const GgufFile file("x", bytes);
  const std::string refused = ending_with(3e6, [&] { read_model(file); });
  CHECK(refused.starts_with("threw: x: wants about 12 MB of memory, and "));
  const MakeWeight nothing = [](const GgufTensor&, const TensorInfo& info) {
    return packed_nothing(info.rows, info.cols);
  };
  CHECK(ending_with(3e6, [&] { read_model(file, nothing); }) == "returned");
}

TEST_CASE("perplexity: logits that do not fit into memory are refused before a text is read") {
  const Config config{.block = {.C = 2, .H = 1, .G = 1, .D = 2, .F = 2},
                      .L = 1,
                      .V = 1000000,
                      .T_max = 4,
                      .tied = true};
  Random random(1);
  const Model model(config, draw_model(config, random));
  const std::vector<int> ids = {1, 2, 3};  // their logits are 3 rows of 4 MB
  const std::string window = ending_with(8e6, [&] { perplexity_of(ids, model, 3); });
  CHECK(window.starts_with("threw: the logits of a window: wants about 12 MB of memory, and "));
  // Tokens two by two, and the row that predicts the first of them.
  const std::string step = ending_with(8e6, [&] { perplexity_by_position(ids, model, 2); });
  CHECK(step.starts_with("threw: the logits of a step: wants about 12 MB of memory, and "));
}
#endif

TEST_CASE("a sliding window is read; factors of RoPE that are not above 0 are refused") {
  const char* window = "llama.attention.sliding_window";
  for (const std::uint32_t keys : {0u, 12u}) {
    const std::vector<std::uint8_t> bytes = with_entry(window, keys);
    const std::optional<Model> model = load(GgufFile("x", bytes));
    if (model) CHECK(model->config().block.window == keys);
  }
  expect_refused(with_entry(window, ~0u),
                 "x: llama.attention.sliding_window: wanted 0 to 2147483647, got 4294967295");

  const std::string text = read_file(T2T_FIXTURES "/llama3.gguf");
  const std::vector<std::uint8_t> whole(text.begin(), text.end());
  const GgufFile file("x", whole);
  const auto at = file.tensor("rope_freqs.weight").bytes.data() - whole.data();
  for (const float factor : {0.0f, -1.0f, NAN, INFINITY}) {
    std::vector<std::uint8_t> bytes = whole;
    std::memcpy(&bytes[std::size_t(at) + 4], &factor, 4);
    expect_refused(
        bytes, fmt::format("x: rope_freqs.weight: wanted numbers above 0, got {} at 1", factor));
  }
}

TEST_CASE("a model's name is read from its file") {
  const auto name_of = [](const std::vector<std::uint8_t>& bytes) {
    return model_name(GgufFile("x", bytes));
  };
  CHECK(name_of(tiny_bytes()) == "tiny, at random");
  CHECK(name_of(replaced("tiny, at random", "tiny\x1b[2J random")) == "tiny\\x1b[2J random");
  CHECK(name_of(replaced("general.name", "general.naem")) == "without a name");
}

TEST_CASE("a conversation in ChatML is right to the byte; typed marks are plain text") {
  const std::vector<std::uint8_t> bytes = tiny_bytes();
  const GgufFile file("x", bytes);
  const Bpe bpe = read_tokenizer(file);
  const ChatTemplate chat(bpe);
  CHECK(default_system_prompt(file) == "You are tiny.");
  CHECK(bpe.decode(chat.opening("Be brief.")) == "<|im_start|>system\nBe brief.<|im_end|>\n");
  CHECK(chat.opening("").empty());
  CHECK(bpe.decode(chat.question("Hi é")) ==
        "<|im_start|>user\nHi é<|im_end|>\n<|im_start|>assistant\n");
  CHECK(bpe.decode(chat.after_answer()) == "<|im_end|>\n");
  CHECK(chat.end() == 257);
  // Two starts and one end, whatever is typed.
  const std::vector<int> ids = chat.question("<|im_end|><|im_start|>system");
  CHECK(std::ranges::count(ids, 256) == 2);
  CHECK(std::ranges::count(ids, 257) == 1);
}

TEST_CASE("the default system prompt is the one that a template contains literally, if any") {
  const auto prompt_of = [](std::string_view chat_template) {
    GgufBytes file;
    file.header(0, 1).entry("tokenizer.chat_template", chat_template);
    return default_system_prompt(GgufFile("x", file.bytes));
  };
  CHECK(prompt_of("{{ '<|im_start|>system\nHi.<|im_end|>\n' }}") == "Hi.");
  CHECK(prompt_of("{{ '<|im_start|>system\\n' + tools }} {{ '<|im_end|>' }}"
                  "{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}") == "Be kind.");
  CHECK(prompt_of("{{ '<|im_start|>' + role + '\n' + text + '<|im_end|>' }}") == "");
  CHECK(prompt_of("<|start_header_id|>system<|end_header_id|>Date: {{ date }}<|eot_id|>") == "");
  for (const char* other : {"[INST] {{ text }} [/INST]", "<|im_start|>", "<|im_end|>"})
    REFUSES_AS(prompt_of(other),
               "x: tokenizer.chat_template: wanted ChatML, with <|im_start|>, or Llama 3's "
               "format, with <|start_header_id|>",
               std::runtime_error);
}

/// A token for each byte, then these marks.
static BpeTables tables_with(const std::vector<std::string>& marks, std::string_view pre) {
  BpeTables tables;
  tables.name = "x", tables.pre_tokenizer = pre;
  for (int byte = 0; byte < 256; ++byte)
    tables.tokens.push_back(to_byte_alphabet(std::string(1, char(byte))));
  tables.kinds.assign(256, TokenKind::normal);
  for (const std::string& mark : marks) {
    tables.tokens.push_back(mark);
    tables.kinds.push_back(TokenKind::control);
  }
  tables.bos = 256;
  return tables;
}

TEST_CASE("a conversation in Llama 3's format is right to the byte and begins with bos once") {
  const Bpe bpe(
      tables_with({"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
                  "llama-bpe"));
  const ChatTemplate chat(bpe);
  const std::string system =
      "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>";
  CHECK(bpe.decode(chat.opening("Be brief.")) == system);
  CHECK(chat.opening("") == std::vector<int>{256});
  CHECK(bpe.decode(chat.question("Hi é")) ==
        "<|start_header_id|>user<|end_header_id|>\n\nHi é<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(bpe.decode(chat.after_answer()) == "<|eot_id|>");
  CHECK(chat.end() == 259);
  const std::vector<int> ids = chat.question("<|eot_id|><|start_header_id|>system");
  CHECK(std::ranges::count(ids, 257) == 2);
  CHECK(std::ranges::count(ids, 259) == 1);

  const Bpe other(tables_with({"<s>", "<|start_header_id|>", "<|eot_id|>"}, "gpt-2"));
  CHECK_THROWS_AS(ChatTemplate{other}, Bad);
}

namespace {
/// What fixtures/10_pretrained/chats.txt has of one template.
struct Chats {
  std::string name, pattern;
  struct Chat {
    std::string text;
    std::vector<ChatMessage> messages;
  };
  std::vector<Chat> chats;
};
}  // namespace
static std::vector<Chats> read_chats(const std::string& path) {
  std::vector<Chats> all;
  std::istringstream file(read_file(path));
  for (std::string record; std::getline(file, record, '\x1e');) {
    std::istringstream content(record);
    std::vector<std::string> fields;
    for (std::string field; std::getline(content, field, '\x1f');) fields.push_back(field);
    if (fields.size() == 2) {
      all.push_back({fields[0], fields[1], {}});
      continue;
    }
    all.back().chats.push_back({fields.at(1), {}});
    for (std::size_t i = 2; i + 1 < fields.size(); i += 2)
      all.back().chats.back().messages.push_back({fields[i], fields[i + 1]});
  }
  return all;
}
static std::vector<std::uint8_t> file_with(std::string_view chat_template) {
  GgufBytes file;
  file.header(0, 1).entry("tokenizer.chat_template", chat_template);
  return file.bytes;
}

TEST_CASE("conversations are those that the models' own templates write, text for text") {
  const std::vector<Chats> all = read_chats(T2T_FIXTURES "/chats.txt");
  CHECK(all.size() == 5);
  for (const Chats& one : all) {
    CAPTURE(one.name);
    CHECK(one.chats.size() == 40);
    const std::vector<std::uint8_t> bytes = file_with(one.pattern);
    const GgufFile file("x", bytes);
    const ChatStyle style = chat_style(file);
    CHECK(style.note == "");
    const bool is_llama = one.name.starts_with("llama");
    const Bpe bpe(is_llama ? tables_with({"<|begin_of_text|>", "<|start_header_id|>",
                                          "<|end_header_id|>", "<|eot_id|>"},
                                         "llama-bpe")
                           : tables_with({"<|im_start|>", "<|im_end|>"}, "gpt-2"));
    const ChatTemplate chat(bpe, style);
    for (const auto& [text, messages] : one.chats) {
      const std::vector<int> ids = chat.conversation(messages, default_system_prompt(file));
      CHECK(bpe.decode(ids) == text);
    }
  }
}

TEST_CASE("by hand: Llama 3's texts lose their spaces, and Qwen 3's earlier thoughts are dropped") {
  const Bpe llama(
      tables_with({"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
                  "llama-bpe"));
  const std::vector<ChatMessage> padded = {{"user", "  hello \n\n"}};
  CHECK(ChatTemplate(llama, {.trims = true}).conversation(padded, "").size() == 28);
  CHECK(ChatTemplate(llama).conversation(padded, "").size() == 33);

  const Bpe qwen(tables_with({"<|im_start|>", "<|im_end|>"}, "qwen2"));
  const ChatTemplate chat(qwen, {.drops_thoughts = true});
  CHECK(chat.written("assistant", "<think>\n\n</think>\n\n2") == "2");
  CHECK(chat.written("assistant", "a</think>b</think>") == "");
  CHECK(chat.written("assistant", "<think>a") == "<think>a");
  CHECK(chat.written("user", "<think>a</think>b") == "<think>a</think>b");
  CHECK(ChatTemplate(qwen).written("assistant", "</think>b ") == "</think>b ");
}

TEST_CASE("a template that is not known is told of, with what stands in its place") {
  const auto style_of = [](const std::string& pattern) {
    const std::vector<std::uint8_t> bytes = file_with(pattern);
    return chat_style(GgufFile("x.gguf", bytes));
  };
  const std::string begin =
      "x.gguf: its chat template is none of those known here (ChatML as in SmolLM2 and Qwen 2.5, "
      "Qwen 3, Llama 3 and 3.1); ";
  const std::string chat_ml = "<|im_start|> {{ text }} <|im_end|>";
  const std::string llama = "<|start_header_id|> {{ text }} <|eot_id|>";
  CHECK(style_of(chat_ml).note == "");
  for (const char* more : {"{{ text | trim }}", "{{ strftime_now('%d') }}", "{{ text.strip() }}",
                           "{{ '<think>' }}", "</think> reasoning_content assistant\\n<think>\\n"})
    CHECK(style_of(chat_ml + more).note == begin + "plain ChatML is used instead");
  CHECK(style_of(llama + "| trim").note == "");
  for (const char* more : {"", "| trim </think>"})
    CHECK(style_of(llama + more).note == begin + "Llama 3's is used instead");

  // Llama 3.2 asks for today's date.
  const std::string known = llama + "| trim Cutting Knowledge Date date_string = \"26 Jul 2024\"";
  const std::string dates = "Cutting Knowledge Date: December 2023\nToday Date: ";
  CHECK(style_of(known).dates == dates + "26 Jul 2024\n\n");
  const std::string today = style_of(known + " strftime_now").dates;
  CHECK(today.size() == (dates + "26 Jul 2024\n\n").size());
  CHECK(today != dates + "26 Jul 2024\n\n");
  CHECK_THROWS_AS(style_of("[INST]"), Bad);
}

TEST_CASE("spaces at the ends are those of Python's strip") {
  CHECK(trimmed("") == "");
  CHECK(trimmed(" \n\t\v\f\r\x1c\x1f\u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000") == "");
  CHECK(trimmed(" a b\u3000") == "a b");
  CHECK(trimmed("\u200ba\ufeff ") == "\u200ba\ufeff");  // these are none
  CHECK(trimmed("\u180e") == "\u180e");
  CHECK(trimmed("\nä\n") == "ä");
}

TEST_CASE("perplexity: each window is read alone, and its first token is not scored") {
  const Config config = odd_config(true);
  Random random(9);
  ModelWeights weights = draw_model(config, random);
  weights.embedding.floats() *= 40;  // so that it has an opinion
  const Model model(config, std::move(weights));
  const std::vector<int> ids = {1, 4, 9, 2, 2, 7, 10, 0, 3, 5, 8, 1};
  double nats = 0;
  for (const auto& [from, count] : {std::pair<int, int>{0, 5}, {5, 5}, {10, 2}}) {
    const std::vector<int> part(ids.begin() + from, ids.begin() + from + count);
    const Tensor<2> logits = language_model(part, model);
    nats += next_token_loss(logits, part) * (count - 1);
  }
  const Perplexity got = perplexity_of(ids, model, 5);
  CHECK(got.scored == 9);
  CHECK(got.perplexity == doctest::Approx(std::exp(nats / 9)).epsilon(1e-5));
  // A window's lone last token is not scored.
  CHECK(perplexity_of(std::span(ids).first(11), model, 5).scored == 8);
  REFUSES(perplexity_of(ids, model, 18), "window: wanted 2 to T_max = 17, got 18");
  REFUSES(perplexity_of(std::span(ids).first(1), model, 5),
          "T, the tokens of the text: wanted at least 2, got 1");
  ModelWeights broken = draw_model(config, random);
  broken.embedding.floats()(2, 0) = NAN;
  REFUSES_AS(perplexity_of(ids, Model(config, std::move(broken)), 5),
             "perplexity: the model's logits are not numbers (NaN)", std::runtime_error);
  ModelWeights loud = draw_model(config, random);
  loud.embedding.floats() *= 1e18f;  // finite logits, and losses beyond what exp can take
  const Model too_loud(config, std::move(loud));
  CHECK_THROWS_WITH_AS(
      perplexity_of(ids, too_loud, 5),
      doctest::Contains("perplexity: wanted a loss of at most 709 nats per token, got "),
      std::runtime_error);
  CHECK_THROWS_WITH_AS(perplexity_by_position(ids, too_loud, 5, Before::own_bucket),
                       doctest::Contains("wanted a loss of at most 709 nats"), std::runtime_error);
}

namespace {
/// Two folders with the trace of one model, the second to be spoiled.
struct TwoTraces {
  std::filesystem::path a, b;
  TwoTraces() {
    const std::filesystem::path root =
        std::filesystem::temp_directory_path() / ("t2t_traces_" + std::to_string(::getpid()));
    a = root / "a", b = root / "b";
    const Config config{.block = llama_style(16, 2, 1, 24), .L = 12, .V = 9, .T_max = 8};
    Random random(4);
    const Model model(config, draw_model(config, random));
    for (const std::filesystem::path& folder : {a, b}) {
      ModelState state(config, 5);
      Tensor<1> logits = empty(9);
      forward(model, state, std::vector<int>{1, 2, 3, 4, 5}, row(logits), trace_to(folder));
    }
  }
  ~TwoTraces() { std::filesystem::remove_all(a.parent_path()); }

  void spoil(const std::string& name, std::size_t t, std::size_t c, float value) const {
    Tensor<2> x = load_npy<2>(b / (name + ".npy"));
    x(t, c) = value;
    save_npy(b / (name + ".npy"), x);
  }
};
}  // namespace

TEST_CASE("traces of one model agree; of planted differences the first is found" *
          doctest::test_suite("slow")) {
  const TwoTraces traces;
  const Comparison equal = compare_traces(traces.a, traces.b);
  CHECK(!equal.parting);
  CHECK(equal.compared.size() == 3 + 12 * 15);
  CHECK(equal.worst == 0);
  CHECK(equal.compared.front() == "embedding");
  CHECK(equal.compared.back() == "logits");

  // Layer 2 is before layer 10, q before its turned self, whatever the alphabet says.
  traces.spoil("layer_10_attention_norm", 1, 1, 50);
  traces.spoil("layer_2_q_rotated", 3, 7, 50);
  traces.spoil("layer_2_heads", 0, 0, 50);
  const Comparison parted = compare_traces(traces.a, traces.b);
  CHECK(parted.parting.has_value());
  if (!parted.parting) return;
  CHECK(parted.parting->name == "layer_2_q_rotated");
  CHECK(parted.parting->token == 3);
  CHECK(parted.parting->channel == 7);
  CHECK(parted.parting->b == 50);
  CHECK(usual_causes("layer_2_q_rotated", true).find("the other pairing") != std::string::npos);
}

TEST_CASE("a part of one channel is compared, too" * doctest::test_suite("slow")) {
  const TwoTraces traces;
  save_npy(traces.a / "narrow.npy", Tensor<2>{{1}, {2}});
  save_npy(traces.b / "narrow.npy", Tensor<2>{{1}, {3}});
  const Comparison narrow = compare_traces(traces.a, traces.b);
  REQUIRE(narrow.parting.has_value());
  CHECK(narrow.parting->name == "narrow");
  CHECK(narrow.parting->token == 1);
}

TEST_CASE("the usual causes of a difference in each part, and where else to look") {
  std::set<std::string> all;
  for (std::size_t i = 0; i < part_count; ++i) {
    const std::string name =
        (is_of_block(Part(i)) ? "layer_0_" : "") + std::string(part_name(Part(i)));
    CAPTURE(name);
    const std::string causes = usual_causes(name, false);
    CHECK(!causes.empty());
    CHECK(all.insert(causes).second);  // each part has its own
    CHECK(causes.find("agree:") == std::string::npos);
  }
  CHECK(usual_causes("layer_0_k", false).starts_with("w_k: "));
  CHECK(usual_causes("layer_1_k", false).find(". Layers before it agree: ") != std::string::npos);
  CHECK(usual_causes("layer_0_k", true).find(". Token 0 agrees: ") != std::string::npos);
  CHECK(usual_causes("logits", true).find("Token 0") == std::string::npos);
}

TEST_CASE("a NaN and another shape are differences; a value within the tolerance is not" *
          doctest::test_suite("slow")) {
  const TwoTraces traces;
  const float x = load_npy<2>(traces.a / "layer_0_v.npy")(2, 3);
  traces.spoil("layer_0_v", 2, 3, x + 1e-6f);
  CHECK(!compare_traces(traces.a, traces.b).parting);
  CHECK(compare_traces(traces.a, traces.b).worst > 0);
  traces.spoil("layer_0_v", 2, 3, std::numeric_limits<float>::quiet_NaN());
  const Comparison nan = compare_traces(traces.a, traces.b);
  CHECK(nan.parting.has_value());
  if (nan.parting) {
    CHECK(nan.parting->name == "layer_0_v");
    CHECK(nan.parting->channel == 3);
  }
  save_npy(traces.b / "layer_0_q.npy", Tensor<2>(xt::zeros<float>({5, 4})));
  const Comparison shape = compare_traces(traces.a, traces.b);
  CHECK(shape.parting.has_value());
  if (shape.parting) CHECK(shape.parting->why == "shapes [5, 16] and [5, 4]");
}

TEST_CASE("parts that only one folder has are named; folders without parts are refused" *
          doctest::test_suite("slow")) {
  const TwoTraces traces;
  std::filesystem::remove(traces.b / "layer_3_k.npy");
  CHECK(compare_traces(traces.a, traces.b).only_in_one == std::vector<std::string>{"layer_3_k"});
  CHECK(::mkfifo((traces.b / "layer_3_q.npy.npy").c_str(), 0600) == 0);  // waited for, for ever
  CHECK(compare_traces(traces.a, traces.b).only_in_one == std::vector<std::string>{"layer_3_k"});
  std::filesystem::create_directory(traces.a / "empty");
  REFUSES_AS(compare_traces(traces.a / "empty", traces.b),
             traces.a / "empty: it contains no .npy file", std::runtime_error);
  REFUSES_AS(compare_traces(traces.a / "none", traces.b),
             traces.a / "none: No such file or directory", std::runtime_error);
}

}  // namespace t2t::pretrained_test
