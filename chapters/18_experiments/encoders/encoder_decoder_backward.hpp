// The backward pass of chapter 09's encoder-decoder, as formulas.
//
//   source → encoder → encoded ─┬────────┐
//                               ↓        ↓        one gradient from each block of the decoder
//   target → decoder's blocks:  cross … cross → logits → loss
//
// Cross attention reads two streams and therefore has two gradients: the queries' gradient goes
// down the target's stream, and the keys' and values' gradient to `encoded`. All blocks of the
// decoder read the same `encoded`, so its gradient is a sum over them. The encoder's backward pass
// can begin only when all of them have added to it. Vaswani et al. 2017.
#pragma once

#include <span>
#include <vector>

#include "09_language_model/encoder_decoder/encoder_decoder.hpp"
#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

/// The gradients of attention's two inputs. If both are the same sequence, their sum is its
/// gradient.
struct CrossGradients {
  Tensor<2> x;       // [T, C]
  Tensor<2> memory;  // [S, C]
};

/// The backward pass of chapter 04's multi_head_attention, for any two inputs. Adds to the
/// gradients of the weights. Throws std::invalid_argument when shapes disagree.
CrossGradients multi_head_backward(const Tensor<2>& x,       // [T, C]
                                   const Tensor<2>& memory,  // [S, C]
                                   const AttentionWeights& weights, std::size_t H, Mask mask,
                                   const Tensor<2>& dout,         // [T, C]
                                   AttentionWeights& gradients);  // added to

/// A source sequence, and a target sequence whose tokens are each predicted from the tokens before.
struct TextPair {
  std::vector<int> source;  // [S]
  std::vector<int> target;  // [T], first a token that begins every answer
  std::vector<int> next;    // [T], the token that follows each token of the target
};

/// Returns Σ loss over the pair's target, in nats, and adds the gradients of scale · Σ loss to
/// `gradients`, if there are any. Throws std::invalid_argument as encode and decode do, for a next
/// token outside [0, V), and when the activation has a gate or the model's networks have biases,
/// for which there is no backward pass here.
double pair_loss(const EncoderDecoder& model, const TextPair& pair, float scale = 1,
                 EncoderDecoder* gradients = nullptr);

/// A model of the same shapes with parameters of 0.
EncoderDecoder zeros_like(const EncoderDecoder& model);
/// All tensors as rows: views, which the model must outlive.
std::vector<ListedTensor> tensors_of(EncoderDecoder& model);

}  // namespace t2t
