#include "04_causal_attention/shows/show_recurrence.hpp"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "04_causal_attention/attention.hpp"
#include "04_causal_attention/recurrence/lstm.hpp"
#include "04_causal_attention/recurrence/recurrence.hpp"
#include "program/print.hpp"
#include "program/program.hpp"
#include "statistics.hpp"

namespace t2t {

/// The rows of w, made orthogonal to each other and of length 1 in turn (Gram and Schmidt). A
/// product with such a matrix keeps a vector's length.
static Tensor<2> orthogonal_rows(Tensor<2> w) {
  const std::size_t C = w.shape(0);
  const auto dot = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t c = 0; c < C; ++c) sum += double(w(i, c)) * w(j, c);
    return sum;
  };
  for (std::size_t i = 0; i < C; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double shared = dot(i, j);
      for (std::size_t c = 0; c < C; ++c) w(i, c) -= float(shared * w(j, c));
    }
    const double length = std::sqrt(dot(i, i));
    for (std::size_t c = 0; c < C; ++c) w(i, c) = float(w(i, c) / length);
  }
  return w;
}

/// What arrives in one run, at each token: [T].
struct Arrivals {
  Tensor<1> plain, large, orthogonal, linear;  // echoes of recurrent cells
  Tensor<1> any, half_fitting;                 // attention's weights of token 0
};

static Arrivals draw_arrivals(std::size_t T, std::size_t C, Random& random) {
  const Tensor<2> x = random.normal<2>({T, C});    // [T, C]
  const Tensor<1> change = random.normal<1>({C});  // [C]
  const RecurrentCell plain = draw_recurrent_cell(C, random);
  RecurrentCell large = plain, orthogonal = plain;
  large.w_h *= 2.6f;
  orthogonal.w_h = orthogonal_rows(plain.w_h);
  const auto echo = [&](const RecurrentCell& cell) {
    return recurrence_echo(recurrence(x, cell), cell, change);
  };
  const Tensor<2> no_states = xt::zeros<float>({T, C});  // where tanh's derivative is 1

  const Tensor<2> k = random.normal<2>({T, C}), any = random.normal<2>({T, C});  // [T, C]
  const Tensor<2> half_fitting =
      0.5f * xt::view(k, 0, xt::newaxis(), xt::all()) + std::sqrt(0.75f) * any;  // [T, C]
  const auto weight = [&](const Tensor<2>& q) {
    return Tensor<1>(xt::col(attention_weights(q, k, Mask::causal), 0));
  };
  return {echo(plain),      echo(large),
          echo(orthogonal), recurrence_echo(no_states, orthogonal, change),
          weight(any),      weight(half_fitting)};
}

void show_recurrence(const Program& program) {
  constexpr std::size_t T = 65, C = 64, runs = 101;
  Random random(program.seed());
  std::vector<Arrivals> drawn;
  for (std::size_t run = 0; run < runs; ++run) drawn.push_back(draw_arrivals(T, C, random));
  program.save("echo_w_h", drawn[0].plain);
  program.save("echo_large_w_h", drawn[0].large);
  program.save("echo_orthogonal_w_h", drawn[0].orthogonal);

  print_section("What arrives at token t of a small change at token 0");
  fmt::print("      recurrence with W_h                          attention with a query\n");
  Table table({">t", ">random", ">2.6 times", ">orthogonal", ">without tanh", "", ">random",
               ">half matching"});
  for (const std::size_t t : {1, 4, 16, 64}) {
    std::vector<std::string> cells = {std::to_string(t)};
    const auto add = [&](const char* format, Tensor<1> Arrivals::*arrived) {
      std::vector<double> values;
      for (const Arrivals& run : drawn) values.push_back((run.*arrived)(t));
      cells.push_back(fmt::format(fmt::runtime(format), quantile(values, 0.5)));
    };
    for (const auto arrived :
         {&Arrivals::plain, &Arrivals::large, &Arrivals::orthogonal, &Arrivals::linear})
      add("{:.0e}", arrived);
    cells.push_back("");
    for (const auto arrived : {&Arrivals::any, &Arrivals::half_fitting}) add("{:.3f}", arrived);
    table.add(cells);
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Medians of 101 runs with C = 64 random channels per token. All columns are derivatives: the "
      "length of a small change when it has arrived at token t, divided by its length at token 0.");
  print_paragraph(
      "recurrence: a change of state 0, in state t. random: the elements of W_h are from N(0, "
      "1/C). 2.6 times: all of them are 2.6 times as large. orthogonal: W_h keeps the length of "
      "any vector. without tanh: the same W_h, in a cell without tanh.");
  print_paragraph(
      "attention: a change of token 0's value, in result t; it is multiplied by that token's "
      "weight. Queries and keys are random. half matching: the cosine of the query with token 0's "
      "key is about 1/2.");
}

/// What arrives through the cell values alone: at each step the forget gate multiplies the change.
static Tensor<1> echo_of_the_cell(const LstmStates& run, const Tensor<1>& change) {
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

void show_lstm(const Program& program) {
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
