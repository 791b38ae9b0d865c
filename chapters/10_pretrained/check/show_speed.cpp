#include "10_pretrained/check/show_speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "09_language_model/accounts/accounts.hpp"
#include "09_language_model/sampling.hpp"
#include "program/print.hpp"
#include "timing/measure.hpp"

namespace t2t {

void show_speed(const Session& session, std::size_t prompt, std::size_t tokens) {
  print_section("Speed");
  const Config& config = session.config();
  prompt = std::min(prompt, config.T_max / 2);
  tokens = std::min(tokens, config.T_max / 2);
  ModelState state = session.state(prompt + tokens);
  Tensor<1> logits = empty(config.V);
  std::vector<int> ids(prompt);
  for (std::size_t t = 0; t < prompt; ++t) ids[t] = int((t * 31 + 7) % config.V);

  forward(session.model, state, ids, row(logits));  // to warm up
  reset(state);
  auto start = std::chrono::steady_clock::now();
  forward(session.model, state, ids, row(logits));
  const double prefill = seconds_since(start);
  start = std::chrono::steady_clock::now();
  for (std::size_t t = 0; t < tokens; ++t)
    forward(session.model, state, std::span(ids).subspan(t % prompt, 1), row(logits));
  const double decode = seconds_since(start) / double(tokens);
  greedy(row(logits));  // throws if they are NaN: then nothing was measured

  const std::string speed =
      fmt::format("prefill of {}: {:.0f} tokens/s; decode of {}: {:.1f} tokens/s", prompt,
                  double(prompt) / prefill, tokens, 1 / decode);
  if (!session.make_state.on_cpu) return print_paragraph(speed + ".");

  const double bytes =
      session.bytes_a_token() +
      inference_memory(config, prompt + tokens / 2, session.make_state.bytes_per_element).cache;
  print_paragraph(fmt::format("{}, where reading the weights and the cache allows at most {:.1f}.",
                              speed, read_bandwidth() / bytes));
  fmt::print("\n");
  print_roofline_flops(fmt::format("prefill, {} tokens", prompt), prefill,
                       total(count_flops(config, prompt, prompt, 1)));
  print_roofline_bytes("decode, one token", decode, bytes, read_bandwidth(), "reading memory");
}

}  // namespace t2t
