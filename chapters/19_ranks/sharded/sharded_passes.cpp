#include "19_ranks/sharded/sharded_passes.hpp"

namespace t2t {

/// Returns the config, once chapter 13 can train such a model. All that takes memory comes after.
static const Config& trained(const Config& config) {
  expect_trained(differences_from_llama(config));
  return config;
}

ShardedPasses::ShardedPasses(const Config& config, std::size_t B, std::size_t T)
    : passes_(trained(config), B, T), kept_(make_kept(settings_of_all(config), B * T)) {}

double ShardedPasses::add(ShardedModel& model, const Batch* batch, float scale,
                          const Dropout& dropout) {
  double sum = 0;
  model.gather_embedding();
  if (batch) passes_.embed(model.room(), *batch, dropout);
  for (std::size_t l = 0; l < kept_.size(); ++l) {
    model.gather_block(l);
    if (batch) passes_.forward(model.block(l), &kept_[l], dropout);
  }
  model.gather_head();
  if (batch) sum = passes_.head(model.room(), *batch, scale, &model.gradients());
  model.scatter_head();
  for (std::size_t l = kept_.size(); l-- > 0;) {
    model.gather_block(l);
    if (batch) passes_.backward(model.block(l), kept_[l], model.gradients().blocks[0], dropout);
    model.scatter_block(l);
  }
  if (batch) passes_.embedding_backward(*batch, model.gradients(), dropout);
  model.scatter_embedding();
  return sum;
}

}  // namespace t2t
