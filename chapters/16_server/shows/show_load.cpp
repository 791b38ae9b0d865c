#include "16_server/shows/show_load.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "16_server/program/load.hpp"
#include "program/print.hpp"
#include "utf8_start.hpp"

namespace t2t {

void add_flags(Program& program, LoadFlags& flags) {
  program.word(
      "load", flags.load,
      "address of a server, such as http://127.0.0.1:8080: sends it many requests and times them");
  program.number("rate", flags.rate, "with --load: requests per second, on average");
  program.size("requests", flags.requests, "with --load: how many requests");
  program.size("words", flags.words, "with --load: words per prompt, on average");
  program.size("tokens", flags.tokens, "with --load: tokens per answer, at most, on average");
}

static void print_times(const LoadResult& result) {
  std::vector<double> first, between, whole;
  for (const RequestResult& request : result.requests) {
    if (!request.answered) continue;
    first.push_back(request.first), whole.push_back(request.end);
    between.insert(between.end(), request.between.begin(), request.between.end());
  }
  Table table({"what", ">p50", ">p95", ">p99", ">max"});
  const auto row = [&](const char* what, const std::vector<double>& seconds) {
    std::vector<std::string> cells = {what};
    for (const double p : {0.5, 0.95, 0.99, 1.0})
      cells.push_back(duration_text(percentile(seconds, p)));
    table.add(cells);
  };
  row("time to first text (TTFT)", first);
  row("between texts (ITL)", between);
  row("end-to-end latency", whole);
  table.print();
}

static int show_load(const Program& program, const LoadFlags& flags) {
  if (!(flags.rate > 0 && flags.rate <= 1000))
    throw std::invalid_argument(
        fmt::format("--rate: wanted a number above 0 and at most 1000, got {}", flags.rate));
  const LoadResult result =
      run_load({flags.load, flags.rate, flags.requests, flags.words, flags.tokens, program.seed()});
  std::size_t answered = 0, tokens = 0, prompt_tokens = 0;
  std::map<std::string, std::size_t> errors;
  for (const RequestResult& request : result.requests) {
    answered += request.answered;
    tokens += request.tokens, prompt_tokens += request.prompt_tokens;
    if (!request.answered) ++errors[request.error];
  }
  print_section(fmt::format("{} requests, {:g} per second on average", flags.requests, flags.rate));
  if (answered > 0) print_times(result);
  print_paragraph(
      fmt::format("{} of {} were answered in {:.1f} s: {} prompt tokens and {} answer tokens, "
                  "{:.1f} "
                  "of the latter per second.",
                  answered, flags.requests, result.seconds, prompt_tokens, tokens,
                  double(tokens) / result.seconds));
  for (const auto& [error, times] : errors)
    print_paragraph(fmt::format("{} not answered: {}", times, printable(error, 200)));
  return answered == flags.requests ? 0 : 1;
}

Task load_task(const Program& program, const LoadFlags& flags) {
  return {"load", {"rate", "requests", "words", "tokens", "seed"}, [&] {
            return show_load(program, flags);
          }};
}

}  // namespace t2t
