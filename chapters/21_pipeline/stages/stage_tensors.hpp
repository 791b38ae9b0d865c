// Which of a model's tensors a stage of the pipeline stores.
//
//   stage 0       embedding (and positions), the first blocks
//   stage s       the next blocks
//   stage p − 1   the last blocks, the final norm, the head
//
// If p does not divide L, the first stages have a block more. The table of a tied model is stored
// by the first stage as its embedding and by the last one as its head, also when both are the same
// stage: two copies, which start equal and take equal steps.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"
#include "19_ranks/collectives/range.hpp"

namespace t2t {

struct StagePlace {
  std::size_t stage, stages;
  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
};

/// The numbers of a stage's blocks in the whole model. Throws std::invalid_argument when there are
/// fewer blocks than stages.
Range blocks_of(const Config& whole, StagePlace place);

/// The config and the weights of a Model that stores what the stage needs. A Model always has a
/// table and a final norm: where the stage needs none, the table has one row of zeros, and nothing
/// reads either. A table that is alone is the embedding of a tied model. Throw as blocks_of does.
Config stage_config(const Config& whole, StagePlace place);
ModelWeights stage_weights(const ModelWeights& weights, const Config& whole, StagePlace place);

/// The tensors that the stage learns, of its weights or of their gradients, with the names and
/// layers that they have in the whole model; the copies of a tied table are "embedding" and
/// "head". In the order of the stage's Model, where the last stage's only table comes first. If
/// is_here is given, only those for which it holds: it is asked with the stage's layers, from 0.
std::vector<ListedTensor> stage_tensors(ModelWeights& own, const Config& whole, StagePlace place,
                                        const std::function<bool(const TensorInfo&)>& is_here = {});

/// All tensors of the whole model in its order. Those of other stages are empty, and so is the last
/// stage's copy of a tied table: over all stages, each element counts once.
std::vector<ListedTensor> counted_once(const std::vector<ListedTensor>& own, const Config& whole);

}  // namespace t2t
