// [rows]
bool softmax_row(Row x, float scale) {
  if (all_hidden(x)) return false;
  Tensor<2> scores = empty(1, x.size());
  for (std::size_t s = 0; s < x.size(); ++s) scores(0, s) = x[s] * scale;
  std::ranges::copy(softmax(scores), x.begin());
  return true;
}

void softmax_rows(Matrix x) { fill(x, softmax(copy_of(x))); }

// [formula]
Tensor<2> softmax(const Tensor<2>& scores) {
  Tensor<2> weights = scores;
  softmax_rows(weights);
  return weights;
}

Tensor<3> softmax(const Tensor<3>& scores) {
  Tensor<3> weights = scores;
  const std::size_t S = scores.shape(2);
  softmax_rows({weights.data(), scores.shape(0) * scores.shape(1), S, S});
  return weights;
}
