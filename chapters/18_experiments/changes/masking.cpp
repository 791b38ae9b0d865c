#include "18_experiments/changes/masking.hpp"

#include "random.hpp"
#include "shapes.hpp"

namespace t2t {

void hide_tokens(Batch& batch, float share, std::uint64_t seed) {
  expect(share > 0 && share <= 1, "share of hidden tokens", "above 0 and at most 1", share);
  Random random(seed, 1);
  for (std::size_t i = 0; i < batch.ids.size(); ++i) {
    const bool hidden = random.next_uniform() < double(share) && batch.targets[i] != not_learned;
    batch.targets[i] = hidden ? batch.ids[i] : not_learned;
    if (hidden) batch.ids[i] = hidden_token;
  }
}

}  // namespace t2t
