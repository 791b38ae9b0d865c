// What must be true of the real model's file, SmolLM2-135M-Instruct: T2T_WEIGHTS names it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "09_language_model/generate.hpp"
#include "10_pretrained/chat/chat.hpp"
#include "10_pretrained/check/perplexity.hpp"
#include "10_pretrained/check/trace_file.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/token_lines.hpp"
#include "files/files.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"

using namespace t2t;

static std::string weights() {
  const char* path = std::getenv("T2T_WEIGHTS");
  if (!path) throw std::runtime_error("T2T_WEIGHTS is not set: it names the .gguf file");
  return path;
}

TEST_CASE("ids with the real vocabulary equal those of the tokenizers library on every text") {
  const Bpe bpe = read_tokenizer(GgufFile::open(weights()));
  CHECK(bpe.size() == 49152);
  CHECK(bpe.eos() == bpe.id("<|im_end|>"));
  const std::vector<TokenLine> lines = read_token_lines(T2T_FIXTURES "/tokens_smollm2.txt");
  CHECK(lines.size() == 115);
  for (const TokenLine& line : lines) {
    CAPTURE(line.special);
    CAPTURE(line.shown);
    const SpecialTokens special =
        line.special == "as_tokens" ? SpecialTokens::as_tokens : SpecialTokens::as_text;
    CHECK(bpe.encode(line.text, special) == line.ids);
  }
}

TEST_CASE("every tensor of the real file becomes finite floats, 134,515,008 in all") {
  const GgufFile file = GgufFile::open(weights());
  CHECK(file.metadata().integer("llama.block_count") == 30);
  CHECK(file.tensors().size() == 272);
  std::size_t count = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::size_t rows = tensor.shape.size() == 1 ? 1 : tensor.shape[0];
    const Tensor<2> x = file.matrix(tensor.name, rows, tensor.shape.back());
    count += x.size();
    double sum = 0;
    for (const float value : x) sum += value;
    CHECK(std::isfinite(sum));
  }
  CHECK(count == 134515008);
}

static const std::vector<std::string> prompts = {"The capital of France is",
                                                 "Once upon a time, in a village by the sea,",
                                                 "def fibonacci(n):\n    ", "1, 2, 3, 4,"};

static std::string fixture(const std::string& name, std::size_t n) {
  return fmt::format(T2T_FIXTURES "/{}_{}{}.npy", name.substr(0, name.find('*')), n,
                     name.find('*') == name.npos ? "" : name.substr(name.find('*') + 1));
}

namespace {
struct Real {
  GgufFile file = GgufFile::open(weights());
  Bpe bpe = read_tokenizer(file);
  Model model = read_model(file);
};
}  // namespace
static const Real& real() {
  static const Real once;
  return once;
}

TEST_CASE("logits are within 5e-4 of float64, the 200 highest of every prompt") {
  const auto& [file, bpe, model] = real();
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    CAPTURE(prompts[n]);
    const std::vector<int> ids = bpe.encode(prompts[n]);
    CHECK(ids == load_npy_ints(fixture("prompt", n)));
    ModelState state(model.config(), ids.size());
    Tensor<1> logits = empty(model.config().V);
    forward(model, state, ids, row(logits));
    const std::vector<int> top = load_npy_ints(fixture("logits*_ids", n));
    Tensor<1> got = empty(top.size());
    for (std::size_t i = 0; i < top.size(); ++i) got(i) = logits(std::size_t(top[i]));
    const Closeness close = all_close(got, load_npy<1>(fixture("logits*_values", n)), 5e-4);
    CHECK_MESSAGE(close, close);
    MESSAGE(prompts[n] << close.report);
    CHECK(greedy(row(logits)) == top[0]);
  }
}

TEST_CASE("greedy text equals the reference up to its first margin below 0.01") {
  const auto& [file, bpe, model] = real();
  for (std::size_t n = 0; n < prompts.size(); ++n) {
    CAPTURE(prompts[n]);
    const std::vector<int> want = load_npy_ints(fixture("greedy", n));
    const Tensor<1> margins = load_npy<1>(fixture("margins", n));
    std::size_t sure = 0;
    while (sure < want.size() && margins(sure) >= 0.01f) ++sure;
    ModelState state(model.config(), 80);
    Random random(1);
    const std::vector<int> got = generate(model, state, bpe.encode(prompts[n]),
                                          {.most = 40, .sampling = {.temperature = 0}}, random);
    CHECK(sure >= 10);
    CHECK(std::vector(got.begin(), got.begin() + long(sure)) ==
          std::vector(want.begin(), want.begin() + long(sure)));
  }
}

TEST_CASE("every part of the first layer, and the stream after each, agree with float64") {
  const auto& [file, bpe, model] = real();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("t2t_real_trace_" + std::to_string(::getpid()));
  const std::vector<int> ids = bpe.encode("The capital of France");
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    Config config = model.config();
    config.block.pairing = pairing;
    const Model rotated(config, model.weights());
    ModelState state(config, ids.size());
    Tensor<1> logits = empty(model.config().V);
    forward(rotated, state, ids, row(logits), trace_to(folder));
    const Comparison comparison = compare_traces(T2T_FIXTURES "/trace", folder);
    if (pairing == Pairing::neighbours) {
      CHECK(!comparison.parting);
      CHECK(comparison.compared.size() == 45);
      MESSAGE("worst " << comparison.worst);
    } else {
      CHECK(comparison.parting.has_value());
      if (comparison.parting) CHECK(comparison.parting->name == "layer_0_q_rotated");
      if (comparison.parting) CHECK(comparison.parting->token == 1);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("perplexity of a text is within 1e-3 of the reference's") {
  const auto& [file, bpe, model] = real();
  const Tensor<1> want = load_npy<1>(T2T_FIXTURES "/perplexity.npy");
  const std::vector<int> ids = bpe.encode(read_file(T2T_FIXTURES "/perplexity.txt"));
  const Perplexity got = perplexity_of(ids, model, 512);
  CHECK(double(got.scored) == double(want(0)));
  CHECK(got.perplexity == doctest::Approx(want(1)).epsilon(1e-3));
  MESSAGE(got.perplexity << " against " << want(1));
}

TEST_CASE("asked for the capital of France, it says Paris") {
  const auto& [file, bpe, model] = real();
  const ChatTemplate chat(bpe);
  std::vector<int> ids = chat.opening(default_system_prompt(file));
  const std::vector<int> question = chat.question("What is the capital of France?");
  ids.insert(ids.end(), question.begin(), question.end());
  ModelState state(model.config(), 128);
  Random random(1);
  const std::vector<int> answer =
      generate(model, state, ids,
               {.most = 32, .stop_tokens = bpe.ends(), .sampling = {.temperature = 0}}, random);
  CHECK(bpe.decode(answer) == "The capital of France is Paris.");
}
