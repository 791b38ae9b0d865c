// What must be true of the server with a model on a device; run on the stand-in, and on a GPU where
// one is.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "11_flash_attention/device_models.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/kernels/stored_matrices.hpp"
#include "12_quantization/kernels/stored_weight.hpp"
#include "15_serving/on_gpu/gpu_runner.hpp"
#include "16_server/on_gpu/runner_on_gpu.hpp"
#include "16_server/server/http_client.hpp"
#include "16_server/server/http_server.hpp"
#include "cuda/device.hpp"
#include "served_tiny.hpp"
#include "support/all_close.hpp"
#include "support/refuses.hpp"

namespace t2t::server_on_gpu_test {

using nlohmann::json;
using std::size_t;

/// A tiny model whose heads are as wide as the kernels want them.
static const std::vector<std::uint8_t>& wide_file() {
  static const std::vector<std::uint8_t> bytes = [] {
    Config config = tiny_config();
    config.block = llama_style(128, 2, 1, 96);
    Random random(5);
    return gguf_file(config, draw_model(config, random));
  }();
  return bytes;
}
static const Session& wide_heads() {
  static const Session session = tiny_session(wide_file());
  return session;
}

/// The same model with its matrices rounded to a type, kept as a file's are for a device, or as
/// floats.
static Session rounded_to(TensorType type, bool kept) {
  GgufFile file("tiny.gguf", wide_file());
  Bpe bpe = read_tokenizer(file);
  return Session(
      std::move(file), std::move(bpe), [=](const GgufTensor& tensor, const TensorInfo& info) {
        const Tensor<2> floats = floats_of(tensor, info.rows, info.cols);
        Weight stored =
            stored_weight(pack_rows(type, quantize_rows(type, floats), info.rows, info.cols));
        if (kept) return stored;
        Tensor<2> room;
        return Weight(Tensor<2>(floats_of(stored, room)));
      });
}

/// The answers to these prompts by HTTP, all asked at once.
static std::vector<std::string> answers(ModelRunner runner,
                                        const std::vector<std::string>& prompts) {
  Service service(std::move(runner), 8);
  const ServedModel model = served_model(wide_heads());
  const HttpServer server(service, model, {.port = 0, .log = false});
  const auto ask = [&](const std::string& prompt) {
    const HttpClient client("http://127.0.0.1:" + std::to_string(server.port()),
                            std::chrono::seconds(120));
    const json body = {{"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}};
    const HttpResult got =
        client.send("POST", "/v1/completions", body.dump(), {{"Content-Type", "application/json"}});
    if (got.status != 200) return "status " + std::to_string(got.status) + ": " + got.body;
    return json::parse(got.body)["choices"][0]["text"].dump();
  };
  std::vector<std::future<std::string>> asked;
  for (const std::string& prompt : prompts)
    asked.push_back(std::async(std::launch::async, ask, prompt));
  std::vector<std::string> all;
  for (std::future<std::string>& one : asked) all.push_back(one.get());
  service.close(std::chrono::seconds(0));
  return all;
}

TEST_CASE("served on a device: the greedy answers are those of the CPU") {
  const EngineOptions options{.pages = 12, .page_size = 8, .sequences = 3, .budget = 24};
  const std::vector<std::string> prompts = {"The first twenty bytes are the same here.",
                                            "The first twenty bytes are the end.", "x",
                                            "Numbers: 3.14159"};
  const Model& model = wide_heads().model;
  const std::vector<std::string> want = answers(model_runner(model, options), prompts);
  const std::vector<std::string> got = answers(gpu_runner(model, options), prompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    CAPTURE(prompts[i]);
    CHECK(got[i] == want[i]);
    CHECK_FALSE(want[i].starts_with("status"));
  }
}

/// The logits of all tokens of a text of 20, of which a server reads 19 in one step and the last
/// one in another.
static Tensor<2> logits_of_a_text(const ModelRunner& runner) {
  std::vector<int> ids;
  for (int t = 0; t < 20; ++t) ids.push_back((7 * t * t + 13 * t) % 256);
  const std::vector<size_t> table = {4, 0, 2};
  const std::span<const int> all = ids;
  Tensor<2> logits = empty(ids.size(), runner.V);
  const Matrix rows(logits);
  runner.run(std::vector<Chunk>{{0, 0, all.first(19), table, 19}}, rows.rows_from(0, 19));
  runner.run(std::vector<Chunk>{{0, 19, all.last(1), table, 1}}, rows.rows_from(19, 1));
  return logits;
}

TEST_CASE("packed weights stay packed on the device, and give the CPU's logits and answers") {
  const EngineOptions options{.pages = 12, .page_size = 8, .sequences = 3, .budget = 24};
  for (const TensorType type : {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1}) {
    CAPTURE(int(type));
    const Session kept = rounded_to(type, true), floats = rounded_to(type, false);
    const Tensor<2> want = logits_of_a_text(model_runner(floats.model, options));
    const ModelRunner runner = stored_runner(kept.model, options);
    const Tensor<2> got = logits_of_a_text(runner);
    CHECK(all_close(got, want, device_models::bound_with_packed_weights(floats.model, want)));
    // A product of one row does not round packed weights to bf16.
    CHECK(got == logits_of_a_text(gpu_runner(kept.model, options, stored_matrices)));
    CHECK(got != logits_of_a_text(gpu_runner(kept.model, options, bf16_matrices)));
    if (type != TensorType::q8_0) continue;
    const std::vector<std::string> prompts = {"The first twenty bytes", "x"};
    CHECK(answers(runner, prompts) == answers(model_runner(floats.model, options), prompts));
  }
}

TEST_CASE("a server with --gpu refuses a machine without one") {
  if (has_gpu()) return;
  REFUSES_AS(runner_on_gpu(wide_heads().model, {}),
             "--gpu: wanted an NVIDIA GPU with its driver, got none", std::runtime_error);
}

}  // namespace t2t::server_on_gpu_test
