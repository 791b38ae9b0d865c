// [rows]
void feed_forward_rows(ConstMatrix x, const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch, Matrix y, const SeeGateAndUp& see) {
  static_cast<void>(scratch), static_cast<void>(see);
  fill(y, feed_forward(copy_of(x), weights, activation));
}

// [formula]
Tensor<2> feed_forward(const Tensor<2>& x, const FeedForwardWeights& weights,
                       Activation activation) {
  FeedForwardScratch scratch(x.shape(0), weights.w_up.rows(), activation);
  Tensor<2> y = empty(x.shape(0), weights.w_down.rows());
  feed_forward_rows(x, weights, activation, scratch, y);
  return y;
}
