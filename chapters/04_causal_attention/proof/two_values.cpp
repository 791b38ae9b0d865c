#include "04_causal_attention/proof/two_values.hpp"

#include <cmath>

namespace t2t {

enum Channel { asks, first, second, number, C };  // C = 4

Tensor<2> answering_tokens(float a, float b) {
  Tensor<2> tokens = xt::zeros<float>({2, int(C)});  // [2, C]
  tokens(0, first) = tokens(1, second) = 1;
  tokens(0, number) = a;
  tokens(1, number) = b;
  return tokens;
}

static AttentionWeights no_weights() {
  const Tensor<2> zeros = xt::zeros<float>({int(C), int(C)});  // [C, C]
  return {zeros, zeros, zeros, zeros};
}

AttentionWeights weights_of_two_heads() {
  AttentionWeights weights = no_weights();
  const Channel wanted[] = {first, second};
  for (std::size_t h = 0; h < 2; ++h) {
    const std::size_t row = 2 * h;    // head h's first channel, as D = 2
    weights.w_q(row, asks) = 40;      // a score of 40 / √2 against 0: nearly all the weight
    weights.w_k(row, wanted[h]) = 1;  // only the wanted token has a key
    weights.w_v(row, number) = 1;     // its value is its number …
    weights.w_o(h, row) = 1;          // … which goes to channel h of the answer
  }
  return weights;
}

AttentionWeights weights_of_one_head(float first_score, float second_score) {
  AttentionWeights weights = no_weights();
  weights.w_q(0, asks) = 2;  // √D, by which attention divides
  weights.w_k(0, first) = first_score;
  weights.w_k(0, second) = second_score;
  weights.w_v(0, number) = 1;
  weights.w_o(0, 0) = weights.w_o(1, 0) = 1;
  return weights;
}

AttentionWeights weights_of_one_head_near(float error) {
  AttentionWeights weights = no_weights();
  weights.w_q(0, asks) = 2;  // √D, by which attention divides
  weights.w_k(0, number) = std::log((0.5f + error) / (0.5f - error));  // weights 1/2 ± error
  weights.w_v(0, number) = 1;
  weights.w_o(0, 0) = weights.w_o(1, 0) = 1;
  weights.w_v(1, first) = 0.25f / error;  // the mean of these two is 0 if both weights are 1/2 …
  weights.w_v(1, second) = -0.25f / error;
  weights.w_o(0, 1) = 1;  // … and otherwise 1/2 or −1/2: added to one channel, taken off the other
  weights.w_o(1, 1) = -1;
  return weights;
}

Tensor<1> two_values(float a, float b, const AttentionWeights& weights, std::size_t H) {
  Tensor<2> asking = xt::zeros<float>({1, int(C)});  // [1, C]
  asking(0, asks) = 1;
  const Tensor<2> out =
      multi_head_attention(asking, answering_tokens(a, b), weights, H, Mask::none);  // [1, C]
  return {out(0, 0), out(0, 1)};
}

}  // namespace t2t
