// The language model: ids in, for each token a score for every token that could follow.
//
//   x = embedding[ids] (+ positions)     x = block(x), L times     logits = norm(x)·headᵀ
//
// Of its own it has the stack, the norm at its end and the head, which is the embedding's table
// once more when tied. Radford et al. 2019; Touvron et al. 2023. Here are its tensors;
// language_model.hpp has the formula, and forward.hpp runs it with caches. Chapter 10 fills it with
// a real model's weights, 12 with numbers of fewer bits, 13 trains it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "08_block/block_rows.hpp"
#include "09_language_model/config.hpp"

namespace t2t {

/// Read from the top: it is the model's diagram. What the Config leaves out stays empty.
struct ModelWeights {
  Weight embedding;                  // [V, C]
  Weight positions;                  // [T_max, C] of floats, learned positions only
  std::vector<BlockWeights> blocks;  // L
  NormWeights final_norm;            // [C]
  Weight head;                       // [V, C], empty when tied
};

/// Chapter 08's list of tensors, for a whole model: calls f(info, tensor) for each, in the order of
/// the diagram. weights.blocks must have L entries.
template <class Weights, class Call>
void for_each_tensor(Weights& weights, const Config& config, Call f) {
  const std::size_t C = config.block.C, V = config.V;
  const auto table = [&](std::string_view name, bool there, std::size_t rows, Role role, auto& w) {
    f(TensorInfo{name, there ? rows : 0, there ? C : 0, role}, w);
  };
  table("embedding", true, V, Role::embedding, weights.embedding);
  table("positions", config.learned_positions, config.T_max, Role::positions, weights.positions);
  for (std::size_t l = 0; l < config.L; ++l)
    for_each_tensor(weights.blocks[l], settings_of(config, l), [&](TensorInfo info, auto& tensor) {
      info.layer = l;
      f(info, tensor);
    });
  const bool has_bias = config.block.norm == Norm::layer;
  f(TensorInfo{"final_norm.gain", C, 1, Role::gain}, weights.final_norm.gain);
  f(TensorInfo{"final_norm.bias", has_bias ? C : 0, 1, Role::bias}, weights.final_norm.bias);
  table("head", !config.tied, V, Role::embedding, weights.head);
}

/// All tensors as their roles begin, with what is added to the stream times 1/√(2·L). Throws as
/// expect_config does.
ModelWeights draw_model(const Config& config, Random& random);

std::size_t parameter_count(const ModelWeights& weights);
/// Of storage, as floats or packed.
std::size_t bytes(const ModelWeights& weights);

/// A Config and weights that fit it: checked once, when it is made, and trusted from then on.
class Model {
 public:
  /// Throws std::invalid_argument as expect_config does, and naming the tensor ("layer 3: w_q …")
  /// and both shapes unless each one fits.
  Model(Config config, ModelWeights weights);
  Model(const Model&) = delete;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  const Config& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  const Block& block(std::size_t l) const { return blocks_[l]; }
  /// The table that logits are made with: [V, C].
  const Weight& head() const;

  /// Calls change(weights), which gives tensors other numbers, and checks as the constructor does;
  /// after what throws, the model can't be used. Blocks are made anew: references to them end here.
  template <class Change>
  void change_weights(Change change) {
    change(weights_);
    trust_weights();
  }
  /// Its weights, to build another model from; this one can't be used afterwards.
  ModelWeights release() &&;

 private:
  void trust_weights();

  Config config_;
  ModelWeights weights_;
  std::vector<Block> blocks_;  // of weights_.blocks, which stay where they are when a Model moves
};

}  // namespace t2t
