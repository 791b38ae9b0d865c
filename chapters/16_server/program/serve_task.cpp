#include "16_server/program/serve_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <thread>

#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/program/default_model.hpp"
#include "10_pretrained/program/open_session.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "15_serving/engine/model_runner.hpp"
#include "15_serving/products/batch_invariant.hpp"
#include "16_server/server/http_message.hpp"
#include "16_server/server/http_server.hpp"
#include "files/files.hpp"
#include "memory.hpp"
#include "program/stop_asked.hpp"
#include "utf8_start.hpp"

namespace t2t {

static constexpr std::size_t page_size = 16;

void add_flags(Program& program, ServeFlags& flags) {
  flags.model = default_model();
  program.yes("serve", flags.serve, "serve a model over HTTP, until Ctrl-C");
  program.input("model", flags.model, "the GGUF file to serve");
  program.word("host", flags.host,
               "address to listen on; addresses other than 127.0.0.1 let other machines in");
  program.size("port", flags.port, "port to listen on; 0: any that is free", 0);
  program.size("context", flags.context, "most tokens of a sequence, including its answer", 2);
  program.size("parallel", flags.parallel, "sequences that are answered at the same time");
  program.size("waiting", flags.waiting,
               "sequences that may wait; further requests get status 429");
  program.size("cache-tokens", flags.cache_tokens,
               "tokens that the KV cache has room for, all sequences together");
  program.size("cache-bits", flags.cache_bits, "bits of a key or value in memory: 32, 8 or 4");
  program.size("swap", flags.swap,
               "most tokens of preempted sequences to copy to other memory, so that they are not "
               "read again; 0: none",
               0);
  program.size("budget", flags.budget, "most tokens that a step reads");
  program.size("chunk", flags.chunk,
               "prompt tokens in a step that answers sequences; 0: as --budget allows", 0);
  program.size("drafts", flags.drafts,
               "tokens drafted for each step, from the sequence itself; 0: none", 0);
  program.input("drafter", flags.drafter,
                "GGUF file of a faster model that drafts instead, with the same tokens");
  program.input("key", flags.key_file,
                "file whose first line clients must send as their API key; without it, no key");
  program.word("allow-origin", flags.origin,
               "origin of other pages that may use the server, such as https://chat.example.org");
  program.yes("float", flags.floats,
              "expand the file's weights into floats, or into bf16 with --gpu; answers come more "
              "slowly");
}

// Products of quantized weights have a fixed order anyway, and products of floats get one.
MakeWeight batch_invariant_matrices(bool all_as_floats) {
  return [=](const GgufTensor& tensor, const TensorInfo& info) {
    const bool multiplied = info.role != Role::positions && info.role != Role::router;
    const bool halves = tensor.type == TensorType::f16 || tensor.type == TensorType::bf16;
    if (!multiplied || (!all_as_floats && !halves && info.cols % block_numbers == 0))
      return packed_matrix(tensor, info);
    return batch_invariant(floats_of(tensor, info.rows, info.cols));
  };
}

static std::string read_key(const std::string& path) {
  if (path.empty()) return {};
  const std::string text = read_file(path, 4096);
  const std::string key = text.substr(0, text.find_first_of("\r\n"));
  if (key.empty())
    throw std::runtime_error(printable(path) + ": wanted a key in the first line, got none");
  return key;
}

static EngineOptions options_of(const ServeFlags& flags) {
  if (flags.port > 65535)
    throw std::invalid_argument(
        fmt::format("--port: wanted a number up to 65535, got {}", flags.port));
  if (flags.cache_tokens < flags.context)
    throw std::invalid_argument(
        fmt::format("--cache-tokens: wanted room for a sequence of --context {}, got {}",
                    flags.context, flags.cache_tokens));
  if (flags.budget < flags.parallel)
    throw std::invalid_argument(
        fmt::format("--budget: wanted a token for each of --parallel {} sequences, got {}",
                    flags.parallel, flags.budget));
  if (flags.cache_bits != 32 && flags.cache_bits != 8 && flags.cache_bits != 4)
    throw std::invalid_argument(
        fmt::format("--cache-bits: wanted 32, 8 or 4, got {}", flags.cache_bits));
  EngineOptions options{.page_size = page_size,
                        .sequences = flags.parallel,
                        .budget = flags.budget,
                        .max_prefill_tokens = flags.chunk,
                        .bits = flags.cache_bits};
  options.pages = options.pages_for(flags.cache_tokens),
  options.swap = options.pages_for(flags.swap);
  return options;
}

ServeOptions checked_options(const ServeFlags& flags) {
  return {options_of(flags), read_key(flags.key_file)};
}

/// The drafting model, with its file's types.
static std::optional<Session> open_drafter(const ServeFlags& flags) {
  if (flags.drafter.empty()) return {};
  if (flags.drafts == 0)
    throw std::invalid_argument("--drafter: wanted --drafts of 1 or more with it, got 0");
  GgufFile file = open_model(flags.drafter);
  Bpe bpe = read_tokenizer(file);
  return std::make_optional<Session>(std::move(file), std::move(bpe), packed_matrix);
}

static void greet(const ServeFlags& flags, const HttpServer& server, const ServedModel& served) {
  const std::string at = "http://" + host_and_port(flags.host, server.port());
  fmt::print(
      "Serving {}.\n  {}/    to chat in a browser\n  {}/v1  for clients of OpenAI's API\n"
      "Ctrl-C ends the server.\n",
      served.name, at, at);
  if (!served.note.empty()) fmt::print("{}.\n", printable(served.note, std::string::npos));
  if (flags.host != "127.0.0.1" && flags.host != "localhost" && flags.host != "::1")
    fmt::print("Other machines may reach it{}, and nothing that they send is encrypted.\n",
               flags.key_file.empty() ? " without a key (--key)" : "");
  std::fflush(stdout);
}

int serve(const ServeFlags& flags, const ServeOptions& options, const Session& session,
          ModelRunner runner) {
  using namespace std::chrono_literals;
  const std::optional<Session> drafter = open_drafter(flags);
  runner.positions = std::min(runner.positions, flags.context);
  Service service(runner, flags.waiting);
  ServedModel served = served_model(session);
  served.max_drafts = flags.drafts;
  if (drafter) use_drafter(served, *drafter, runner.positions);
  const HttpServer server(service, served,
                          {.host = flags.host,
                           .port = int(flags.port),
                           .key = options.key,
                           .origin = flags.origin,
                           .connections = flags.parallel + flags.waiting + 256});
  const StopAsked stop{SIGINT, SIGTERM};
  greet(flags, server, served);
  while (!StopAsked::asked()) std::this_thread::sleep_for(100ms);
  fmt::print("No more requests are accepted; unfinished answers have 10 s to end.\n");
  std::fflush(stdout);
  service.close(10s);
  return 0;
}

/// On a GPU, weights that are not kept for the runner become bf16.
static MakeWeight matrices_for(const ServeFlags& flags) {
  if (!flags.on_gpu.make_runner) return batch_invariant_matrices(flags.floats);
  return flags.floats ? packed_matrix : flags.on_gpu.make_weight;
}

static int serve_alone(const ServeFlags& flags) {
  const ServeOptions options = checked_options(flags);
  GgufFile file = open_model(flags.model);
  Bpe bpe = read_tokenizer(file);
  const Session session(std::move(file), std::move(bpe), matrices_for(flags));
  const MakeRunner& on_gpu = flags.on_gpu.make_runner;
  return serve(
      flags, options, session,
      on_gpu ? on_gpu(session.model, options.engine) : model_runner(session.model, options.engine));
}

std::vector<std::string> serve_flags() {
  return {"model",        "host",       "port",         "context", "parallel", "waiting",
          "cache-tokens", "cache-bits", "swap",         "budget",  "chunk",    "drafts",
          "drafter",      "key",        "allow-origin", "float"};
}

Task serve_task(const ServeFlags& flags, const std::vector<std::string>& more) {
  return {"serve", joined(serve_flags(), more), [&flags] { return serve_alone(flags); }};
}

}  // namespace t2t
