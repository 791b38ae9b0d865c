// What must be true of the server with a model on a device; run on the stand-in, and on a GPU where
// one is.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "15_serving/on_gpu/gpu_runner.hpp"
#include "16_server/on_gpu/runner_on_gpu.hpp"
#include "16_server/server/http_client.hpp"
#include "16_server/server/http_server.hpp"
#include "cuda/device.hpp"
#include "served_tiny.hpp"
#include "support/refuses.hpp"

namespace t2t::server_on_gpu_test {

using nlohmann::json;
using std::size_t;

/// A tiny model whose heads are as wide as the kernels want them.
static const Session& wide_heads() {
  static const std::vector<std::uint8_t> bytes = [] {
    Config config = tiny_config();
    config.block = llama_style(128, 2, 1, 96);
    Random random(5);
    return gguf_file(config, draw_model(config, random));
  }();
  static const Session session = tiny_session(bytes);
  return session;
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

TEST_CASE("a server with --gpu refuses a machine without one") {
  if (has_gpu()) return;
  REFUSES_AS(runner_on_gpu(wide_heads().model, {}),
             "--gpu: wanted an NVIDIA GPU with its driver, got none", std::runtime_error);
}

}  // namespace t2t::server_on_gpu_test
