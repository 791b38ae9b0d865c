#include "16_server/api/metrics.hpp"

#include <fmt/format.h>

#include <string_view>

namespace t2t {

std::string metrics_text(const ServiceCounts& counts) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type, std::size_t value,
                       std::string_view help) {
    text += fmt::format("# HELP t2t_{0} {1}\n# TYPE t2t_{0} {2}\nt2t_{0} {3}\n", name, help, type,
                        value);
  };
  const auto total = [&](std::string_view name, std::size_t value, std::string_view help) {
    add(name, "counter", value, help);
  };
  const auto now = [&](std::string_view name, std::size_t value, std::string_view help) {
    add(name, "gauge", value, help);
  };
  total("sequences_total", counts.sequences, "Sequences that were accepted.");
  total("sequences_ended_total", counts.ended, "Sequences that finished.");
  total("sequences_cancelled_total", counts.cancelled, "Sequences cancelled by their clients.");
  total("sequences_failed_total", counts.failed, "Sequences that have ended with an error.");
  total("requests_refused_total", counts.refused, "Requests refused because too many waited.");
  total("preemptions_total", counts.preemptions, "Times that a sequence was preempted.");
  total("steps_total", counts.steps, "Steps of the engine.");
  total("prompt_tokens_total", counts.prompt_tokens, "Tokens of the accepted prompts.");
  total("tokens_read_total", counts.tokens_read,
        "Tokens that the model has read, including drafts.");
  total("generation_tokens_total", counts.tokens_generated, "Tokens generated.");
  now("sequences_running", counts.running, "Running sequences.");
  now("sequences_waiting", counts.waiting, "Sequences that wait to be admitted.");
  now("pages", counts.pages, "Pages of memory for keys and values.");
  now("pages_free", counts.pages_free, "Free pages.");
  now("pages_cached", counts.pages_cached, "Pages cached for sequences with the same prefix.");
  return text;
}

}  // namespace t2t
