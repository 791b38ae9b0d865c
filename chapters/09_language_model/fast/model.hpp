// The language model's tensors: ids come in, and each token gets a score for every token that
// could follow it.
//
//   x = embedding[ids] (+ positions)     x = block(x), L times     logits = norm(x)·headᵀ
//   (in Gemma x begins as embedding[ids]·√C, and Gemma 2 caps the logits)
//
// Around chapter 08's blocks stand the embedding, the final norm and the head, which is the
// embedding's table again when the two are tied. Radford et al. 2019; Touvron et al. 2023.
// language_model.hpp is the formula, and forward.hpp computes it with caches. Chapter 10 loads a
// real model's weights into these tensors, chapter 12 stores them in fewer bits, 13 trains them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "08_block/fast/block_rows.hpp"
#include "09_language_model/config.hpp"

namespace t2t {

/// In the order in which a forward pass uses them. What the Config leaves out stays empty.
struct ModelWeights {
  Weight embedding;                  // [V, C]
  Weight positions;                  // [T_max, C] of floats, learned positions only
  std::vector<BlockWeights> blocks;  // L
  NormWeights final_norm;            // [C]
  Weight head;                       // [V, C], empty when tied
};

/// Chapter 08's list of tensors, for a whole model: calls f(info, tensor) for each, in the order
/// above. weights.blocks must have L entries.
template <class Weights, class Call>
void for_each_tensor(Weights& weights, const Config& config, Call f) {
  const std::size_t C = config.block.C, V = config.V;
  const auto table = [&](std::string_view name, bool there, std::size_t rows, Role role, auto& w) {
    f(TensorInfo{name, there ? rows : 0, there ? C : 0, role}, w);
  };
  table("embedding", true, V, Role::embedding, weights.embedding);
  table("positions", config.learned_positions, config.T_max, Role::positions, weights.positions);
  for (std::size_t l = 0; l < config.L; ++l)
    for_each_tensor(weights.blocks.at(l), settings_of(config, l),
                    [&](TensorInfo info, auto& tensor) {
                      info.layer = l;
                      f(info, tensor);
                    });
  const bool has_bias = config.block.norm == Norm::layer;
  f(TensorInfo{"final_norm.gain", C, 1, Role::gain}, weights.final_norm.gain);
  f(TensorInfo{"final_norm.bias", has_bias ? C : 0, 1, Role::bias}, weights.final_norm.bias);
  table("head", !config.tied, V, Role::embedding, weights.head);
}

/// Empty weights, with room for all blocks and their experts.
ModelWeights room_for(const Config& config);

/// Every tensor with the initial values of its role. Matrices whose products are added to the
/// stream are scaled by 1/√(2·L). Throws as expect_config does.
ModelWeights draw_model(const Config& config, Random& random);

/// Counted from the tensors themselves, without a Config.
std::size_t parameter_count(const ModelWeights& weights);
/// Bytes in which the weights are stored, as floats or packed.
std::size_t bytes(const ModelWeights& weights);
/// What generating one token reads of them: of each block's experts only as many as it chooses.
double bytes_a_token(const ModelWeights& weights, const Config& config);

/// A Config and weights that fit it. They are checked once, when the Model is made.
class Model {
 public:
  /// Throws std::invalid_argument as expect_config does, and for a tensor of another shape, which
  /// it names ("layer 3: w_q …") with both shapes, a number of blocks that is not L, and packed
  /// positions.
  Model(Config config, ModelWeights weights);
  Model(const Model&) = delete;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  const Config& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  const Block& block(std::size_t l) const { return blocks_[l]; }
  /// The matrix whose product with a vector gives its logits: [V, C].
  const Weight& head() const;

  /// Calls change(weights), which may give tensors other values, then checks the weights as the
  /// constructor does. If either throws, the model must not be used again. Blocks are made anew:
  /// references to the old ones are invalid.
  template <class Change>
  void change_weights(Change change) {
    change(weights_);
    trust_weights();
  }
  /// Gives the weights away, for another model. This one must not be used afterwards.
  ModelWeights release() &&;

 private:
  void trust_weights();

  Config config_;
  ModelWeights weights_;
  std::vector<Block> blocks_;  // refer to weights_.blocks, whose address stays when a Model moves
};

}  // namespace t2t
