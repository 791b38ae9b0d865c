#include "25_sinks/shows/show_sinks.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "25_sinks/shows/learned_sink.hpp"
#include "25_sinks/sink_backward.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

void show_by_hand() {
  print_section("By hand");
  const Tensor<2> scores = {{0, std::log(2.0f)}}, values = {{6, 12}};
  const float sink = std::log(3.0f);
  const SinkWeights weights = softmax_with_sink(scores, sink);
  const SinkScoreGradients d = softmax_with_sink_backward(weights, values);
  Table table({"", ">key 0", ">key 1", ">sink"});
  table.add({"score", "0", "ln 2", "ln 3"});
  table.add({"weight without a sink", "0.3333", "0.6667", ""});
  table.add({"weight", fmt::format("{:.4f}", weights.keys(0, 0)),
             fmt::format("{:.4f}", weights.keys(0, 1)), fmt::format("{:.4f}", weights.sink(0))});
  table.add({"value", "6", "12", "none"});
  table.add({"gradient of the score", fmt::format("{:.4f}", d.scores(0, 0)),
             fmt::format("{:.4f}", d.scores(0, 1)), fmt::format("{:.4f}", d.sink)});
  table.print();
}

Tensor<2> show_shares(std::uint64_t seed) {
  constexpr std::size_t rows = 256;
  const std::array<float, 5> sinks = {0, 2, 4, 6, 8};
  const std::vector<std::size_t> keys = {16, 128, 1024, 8192};
  print_section("What a sink takes of a row's weight");
  std::vector<std::string> header = {">sink's score"};
  for (const std::size_t S : keys) header.push_back(fmt::format(">{} keys", with_commas(S)));
  Table table(header);
  Tensor<2> shares = empty(sinks.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Random random(seed);
    const Tensor<2> scores = random.normal<2>({rows, keys[i]});
    for (std::size_t n = 0; n < sinks.size(); ++n) {
      const Tensor<1> taken = softmax_with_sink(scores, sinks[n]).sink;
      double sum = 0;
      for (const float share : taken) sum += double(share);
      shares(n, i) = float(sum / double(rows));
    }
  }
  for (std::size_t n = 0; n < sinks.size(); ++n) {
    std::vector<std::string> cells = {fmt::format("{:g}", sinks[n])};
    for (std::size_t i = 0; i < keys.size(); ++i)
      cells.push_back(fmt::format("{:.1f} %", 100 * shares(n, i)));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(fmt::format(
      "Mean of {} rows whose scores are drawn from N(0, 1). The sum of their exponentials grows "
      "with the number of keys, and the sink's exponential does not.",
      rows));
  return shares;
}

void show_learned(std::uint64_t seed) {
  print_section("A head that must find a key or say nothing");
  Table table({"", ">gain", ">sink's score", ">error, with a match", ">without",
               ">to the sink, with a match", ">without"});
  for (const bool with_sink : {false, true}) {
    const LearnedSink found = learn_sink(with_sink, seed);
    table.add({with_sink ? "with a sink" : "without a sink", fmt::format("{:.2f}", found.gain),
               with_sink ? fmt::format("{:.2f}", found.sink) : "",
               fmt::format("{:.3f}", found.matched), fmt::format("{:.3f}", found.unmatched),
               with_sink ? fmt::format("{:.2f}", found.to_sink) : "",
               with_sink ? fmt::format("{:.2f}", found.to_sink_else) : ""});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Half of the queries match one of 16 keys and should get its value; the others match none "
      "and should get 0. The head learns a gain of its queries and, in the second row, its sink. "
      "Errors are mean squares; a value's elements are drawn from N(0, 1).");
}

}  // namespace t2t
