// The show's parts on what attention replaced: how much of token 0 arrives at token t.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/recurrence/lstm.hpp"
#include "04_causal_attention/recurrence/recurrence.hpp"
#include "program/print.hpp"
#include "program/program.hpp"

namespace t2t {

inline void show_recurrence(const Program& program) {
  constexpr std::size_t T = 65, C = 64;
  Random random(program.seed());
  const Tensor<2> x = random.normal<2>({T, C});    // [T, C]
  const Tensor<1> change = random.normal<1>({C});  // [C]
  const auto echo_of = [&](float scale) {
    const RecurrentCell cell = draw_recurrent_cell(C, random, scale);
    return recurrence_echo(recurrence(x, cell), cell, change);  // [T]
  };
  const Tensor<1> plain = echo_of(1), large = echo_of(2.5f);
  const Tensor<2> k = random.normal<2>({T, C}), any = random.normal<2>({T, C});  // [T, C]
  const Tensor<2> asked = xt::ones<float>({T, C}) * xt::view(k, 0, xt::all());   // [T, C]
  const Tensor<2> by_chance = attention_weights(any, k, Mask::causal);           // [T, T]
  const Tensor<2> if_asked = attention_weights(asked, k, Mask::causal);          // [T, T]
  program.save("echo_w_h", plain);
  program.save("echo_large_w_h", large);

  print_section("What arrives at token t of a small change at token 0");
  Table table({">t", ">recurrence", ">larger W_h", ">random query", ">fitting query"});
  for (const std::size_t t : {1, 4, 16, 64})
    table.add({std::to_string(t), fmt::format("{:.0e}", plain(t)), fmt::format("{:.0e}", large(t)),
               fmt::format("{:.3f}", by_chance(t, 0)), fmt::format("{:.3f}", if_asked(t, 0))});
  table.print();
  fmt::print("\n");
  print_paragraph("One run with C = 64 random numbers for each token.");
  print_paragraph(
      "recurrence: the length of the change at state t, divided by its length at state 0; the "
      "numbers in W_h are from N(0, 1/C).");
  print_paragraph("larger W_h: the same with 2.5 times such numbers.");
  print_paragraph(
      "random query: the weight of token 0, by which attention multiplies a change of its value; "
      "query and keys are random.");
  print_paragraph("fitting query: the same when the query is token 0's key.");
}

/// What arrives through the cell values alone: at each step the forget gate multiplies the change.
inline Tensor<1> echo_of_the_cell(const LstmStates& run, const Tensor<1>& change) {
  const std::size_t T = run.cells.shape(0), C = run.cells.shape(1);
  Tensor<1> echo = xt::ones<float>({T}), moved = change;  // [T], [C]
  const auto length = [](const Tensor<1>& v) {
    return std::sqrt(xt::sum(xt::square(xt::cast<double>(v)))());
  };
  for (std::size_t t = 1; t < T; ++t) {
    for (std::size_t c = 0; c < C; ++c) moved(c) *= run.gates(t, C + c);
    echo(t) = float(length(moved) / length(change));
  }
  return echo;
}

inline void show_lstm(const Program& program) {
  constexpr std::size_t T = 65, C = 64;
  Random random(program.seed());
  const Tensor<2> x = random.normal<2>({T, C});    // [T, C]
  const Tensor<1> change = random.normal<1>({C});  // [C]
  const LstmCell half_open = draw_lstm_cell(C, random, 0), open = draw_lstm_cell(C, random, 3);
  const LstmStates half_run = lstm(x, half_open), open_run = lstm(x, open);
  const Tensor<1> half = lstm_echo(half_run, half_open, change);
  const Tensor<1> wide = lstm_echo(open_run, open, change);
  const Tensor<1> half_cell = echo_of_the_cell(half_run, change);
  const Tensor<1> wide_cell = echo_of_the_cell(open_run, change);
  program.save("echo_lstm_half_open", half);
  program.save("echo_lstm_open", wide);

  print_section("LSTM: what arrives at cell t of a small change at cell 0");
  fmt::print("      forget gates about 1/2    forget gates about 0.95\n");
  Table table({">t", ">all paths", ">cell alone", "", ">all paths", ">cell alone"});
  for (const std::size_t t : {1, 4, 16, 64}) {
    const auto cell = [t](const Tensor<1>& echo) { return fmt::format("{:.0e}", echo(t)); };
    table.add({std::to_string(t), cell(half), cell(half_cell), "", cell(wide), cell(wide_cell)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "One run each, C = 64: the length of the change at cell t, divided by its length at cell 0. "
      "The forget gates' biases are 0 and 3. all paths: through the cell, and through the state "
      "into the next gates. cell alone: multiplied by the forget gates only.");
}

}  // namespace t2t
