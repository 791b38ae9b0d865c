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
  total("texts_total", counts.texts, "Texts that have been let in.");
  total("texts_ended_total", counts.ended, "Texts that have ended by themselves.");
  total("texts_cancelled_total", counts.cancelled, "Texts that their clients have ended.");
  total("texts_failed_total", counts.failed, "Texts that have ended with an error.");
  total("requests_refused_total", counts.refused, "Requests refused because too many waited.");
  total("texts_stopped_total", counts.stops, "Times that a text had to make room and wait.");
  total("steps_total", counts.steps, "Steps of the engine.");
  total("prompt_tokens_total", counts.prompt_tokens, "Tokens of the prompts that were let in.");
  total("tokens_read_total", counts.tokens_read,
        "Tokens that the model has read, drafts among them.");
  total("tokens_said_total", counts.tokens_said, "Tokens of answers.");
  now("texts_running", counts.running, "Texts that are being read or answered.");
  now("texts_waiting", counts.waiting, "Texts that wait for a place.");
  now("pages", counts.pages, "Pages of memory for keys and values.");
  now("pages_free", counts.pages_free, "Pages that hold nothing.");
  now("pages_kept", counts.pages_kept, "Pages kept for texts with the same beginning.");
  return text;
}

}  // namespace t2t
