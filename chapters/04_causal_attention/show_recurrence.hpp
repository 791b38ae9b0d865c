// The show's part on what attention replaced: how much of token 0 arrives at token t.
#pragma once

#include <fmt/core.h>

#include <string>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/lstm.hpp"
#include "04_causal_attention/recurrence.hpp"
#include "print.hpp"
#include "program.hpp"

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
  const auto lstm_echo_of = [&](float forget_bias) {
    const LstmCell cell = draw_lstm_cell(C, random, forget_bias);
    return lstm_echo(lstm(x, cell), cell, change);  // [T]
  };
  const Tensor<1> echoes[] = {echo_of(1), echo_of(2.5f), lstm_echo_of(0), lstm_echo_of(3)};
  const Tensor<2> k = random.normal<2>({T, C}), any = random.normal<2>({T, C});  // [T, C]
  const Tensor<2> asked = xt::ones<float>({T, C}) * xt::view(k, 0, xt::all());   // [T, C]
  const Tensor<2> by_chance = attention_weights(any, k, Mask::causal);           // [T, T]
  const Tensor<2> if_asked = attention_weights(asked, k, Mask::causal);          // [T, T]
  const char* names[] = {"echo_w_h", "echo_large_w_h", "echo_lstm_half_open", "echo_lstm_open"};
  for (std::size_t i = 0; i < 4; ++i) program.save(names[i], echoes[i]);

  print_section("What arrives at token t of a small change at token 0");
  fmt::print("         recurrence            LSTM                   attention\n");
  Table table(
      {">t", ">w_h", ">2.5·w_h", ">open 1/2", ">open 0.95", ">random query", ">token 0's own key"});
  for (const std::size_t t : {1, 4, 16, 64}) {
    std::vector<std::string> cells = {std::to_string(t)};
    for (const Tensor<1>& echo : echoes) cells.push_back(fmt::format("{:.0e}", echo(t)));
    cells.push_back(fmt::format("{:.3f}", by_chance(t, 0)));
    cells.push_back(fmt::format("{:.3f}", if_asked(t, 0)));
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Recurrence: the length of the change at state t, divided by its length at state 0, with "
      "w_h from N(0, 1/C) and with 2.5 times such numbers. LSTM: the same of its cell, with "
      "forget gates that start about 1/2 or about 0.95 open (biases 0 and 3). Attention: a change "
      "of token 0's value arrives multiplied by its weight, for a random query and for a query "
      "that is token 0's key.");
}

}  // namespace t2t
