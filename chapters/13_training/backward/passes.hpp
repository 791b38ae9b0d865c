// The pieces of a step: the embedding, a block and the head, each forward and backward.
//
//   embed → forward of each block → head → backward of each block → embedding_backward
//        x          x            x → dx          dx             dx
//
// model_backward.hpp calls them one after the other. Chapters 19 and 20 call them, too, and put
// messages between processes in between.
#pragma once

#include <cstddef>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "13_training/attention/batch_attention.hpp"
#include "13_training/backward/block_backward.hpp"
#include "13_training/backward/cross_entropy.hpp"

namespace t2t {

/// B sequences of T tokens, one after the other, and for each token the next one.
struct Batch {
  std::size_t B, T;
  std::vector<int> ids;      // [B·T]
  std::vector<int> targets;  // [B·T], some may be not_learned
};
/// Room for B sequences, of zeros.
Batch make_batch(std::size_t B, std::size_t T);
/// Throws std::invalid_argument for a batch of other sizes.
void expect_batch(const Batch& batch, std::size_t B, std::size_t T);

/// What the pieces work in. Apart from dropout of attention's weights, calls allocate nothing.
class Passes {
 public:
  /// For B sequences of T tokens. Throws std::invalid_argument when B or T is 0 or T is above
  /// T_max, and as expect_config and BackwardScratch do; std::runtime_error when there is not
  /// enough free memory.
  Passes(const Config& config, std::size_t B, std::size_t T, TrainingFunctions functions = {});

  Matrix x() { return x_; }    // [N, C], the residual stream
  Matrix dx() { return dx_; }  // [N, C], its gradient

  /// x becomes the tokens' embedding. Throws as embed_tokens does.
  void embed(const Model& model, const Batch& batch, const Dropout& dropout);
  /// x goes through a block, which saves what its backward pass needs, if `kept` is given.
  void forward(const Block& block, KeptBlock* kept, const Dropout& dropout);
  /// The final norm, the head and the loss of x: adds the gradients of scale · Σ loss, if they are
  /// wanted, and dx becomes the gradient of x. Returns Σ loss over the targets that are to be
  /// learned, in nats. Throws as cross_entropy_rows does.
  double head(const Model& model, const Batch& batch, float scale, ModelWeights* gradients);
  /// dx goes back through a block, as block_backward does and returns.
  double backward(const Block& block, const KeptBlock& kept, BlockWeights& gradients,
                  const Dropout& dropout);
  /// dx becomes the gradient of the embeddings, and is added to those of the tables that are
  /// learned.
  void embedding_backward(const Batch& batch, ModelWeights& gradients, const Dropout& dropout);

  std::size_t scratch_bytes() const;

 private:
  std::size_t B_, T_;
  TrainingFunctions functions_;
  Tensor<2> x_, dx_;
  Tensor<2> logits_;  // [some rows, V]
  std::vector<double> losses_;
  std::vector<Run> runs_;  // [B], of T tokens each
  BatchAttention attention_;
  BlockScratch forward_scratch_;
  BackwardScratch backward_scratch_;
  std::vector<RopeTable> backward_tables_;  // [L]
};

}  // namespace t2t
