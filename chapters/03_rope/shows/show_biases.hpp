// The program's part on positions that are learned, or added to scores: a learned table, ALiBi,
// T5's buckets and Shaw's vectors. The learned parameters here are random, as before training.
#pragma once

namespace t2t {

void show_biases();

}  // namespace t2t
