// A policy so small that all its answers can be summed over: a table of logits, with a row for the
// token before. Expectations are then exact, and their gradients come from differences in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "13_training/differences.hpp"
#include "17_fine_tuning/preferences/transcript.hpp"
#include "17_fine_tuning/preferences/weighted_loss.hpp"

namespace t2t {

/// A table of logits [V, V] between -2 and 2, which floats hold exactly.
inline Doubles bigram_table(std::uint32_t number, std::size_t V = 3) {
  Doubles table(V, V);
  for (std::size_t i = 0; i < V * V; ++i)
    table.numbers[i] = double(2 * std::sin(float(7 * number + 1) * float(i + 1)));
  return table;
}

inline double bigram_log_p(const Doubles& table, int before, int token) {
  double exps = 0;
  for (std::size_t v = 0; v < table.cols; ++v) exps += std::exp(table(std::size_t(before), v));
  return table(std::size_t(before), std::size_t(token)) - std::log(exps);
}

/// ln p of each learned target of a batch, 0 for others.
inline std::vector<double> bigram_log_p(const Doubles& table, const Batch& batch) {
  std::vector<double> log_p(batch.ids.size());
  for (std::size_t i = 0; i < log_p.size(); ++i)
    if (batch.targets[i] != not_learned)
      log_p[i] = bigram_log_p(table, batch.ids[i], batch.targets[i]);
  return log_p;
}

/// The gradient of Σ weight·(−ln p) with respect to the table, from weighted_loss_rows.
inline Tensor<2> bigram_gradient(const Doubles& table, const Batch& batch,
                                 const std::vector<float>& weights) {
  const std::size_t N = batch.ids.size(), V = table.cols;
  Tensor<2> logits = empty(N, V), gradient = xt::zeros<float>({V, V});
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t v = 0; v < V; ++v) logits(i, v) = float(table(std::size_t(batch.ids[i]), v));
  std::vector<double> losses(N);
  weighted_loss_rows(logits, batch.targets, weights, losses);
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t v = 0; v < V; ++v) gradient(std::size_t(batch.ids[i]), v) += logits(i, v);
  return gradient;
}

/// A prompt of token 0, and an answer.
inline Transcript bigram_answer(std::vector<int> answer) {
  Transcript transcript;
  append(transcript, std::vector{0}, false);
  append(transcript, answer, true);
  return transcript;
}

/// All answers of up to two tokens of 0, 1 and the end mark 2, to a prompt of token 0.
inline std::vector<Transcript> all_bigram_answers() {
  std::vector<Transcript> answers = {bigram_answer({2})};
  for (const int first : {0, 1})
    for (const int second : {0, 1, 2}) answers.push_back(bigram_answer({first, second}));
  return answers;
}

inline Batch batch_of(const std::vector<Transcript>& answers, std::size_t T) {
  Batch batch = make_batch(answers.size(), T);
  fill(batch, answers);
  return batch;
}

}  // namespace t2t
