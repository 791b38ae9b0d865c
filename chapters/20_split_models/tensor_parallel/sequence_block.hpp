// Sequence parallelism: between the products of a tensor parallel block, each rank has a range of
// the tokens, and not the whole stream.
//
//   own rows of the stream → norm → all-gather → the own heads of all tokens → w_o → reduce-scatter
//   → the own rows of the sum, added to the own rows of the stream
//
// The ring's all-reduce is a reduce-scatter and then an all-gather. Here the two stand apart, with
// the norm in between: the same messages, bytes and bits, and each norm is computed once, and not
// on all ranks. Of the stream, a rank stores a p-th, which counts in training, where every layer's
// is kept. Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer
// Models".
#pragma once

#include "08_block/fast/block_rows.hpp"
#include "19_ranks/start/communicator.hpp"

namespace t2t {

/// The block in place, on a rank's rows of the stream: of T tokens, which the ranks must divide,
/// rank r has T/p from r·T/p on. The block's weights are the rank's own (shards.hpp), and the runs
/// are of all T rows. All ranks must call it. Throws std::invalid_argument when own is not [T/p,
/// C], for T of 0 or above the scratch's rows, and for norms that do not come before the sublayers;
/// and as the attention and messages.hpp do.
void sequence_block_rows(const Communicator& ranks, Matrix own, Runs runs, const Block& block,
                         const Attention& attention, BlockScratch& scratch);

}  // namespace t2t
