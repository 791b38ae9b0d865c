// A checkpoint: all that a run needs to go on as if it had never stopped.
//
// It is one GGUF file of float32 tensors (chapter 10): the weights, the optimizer's running means
// and squares under the same names with a letter before them, and the curve so far; the options of
// the run are its metadata. It is a single file, since two could be of different steps when a run
// is killed between them. It is written under a new name, synced and then renamed, so that at each
// moment a whole checkpoint is there: the last one or the new one.
#pragma once

#include <filesystem>

#include "10_pretrained/file/gguf.hpp"
#include "10_pretrained/file/gguf_bytes.hpp"
#include "13_training/trainer/loss_curve.hpp"

namespace t2t {

/// Writes the trainer's state, with the run's curve so far. Throws std::runtime_error, naming the
/// file, when it can't be written, and std::invalid_argument for what could not be read back: a
/// curve without a point for each step, and an option above 10^9; both as expect_finite does. An
/// older file of that name is then as it was. `more` are further entries.
void save_checkpoint(const std::filesystem::path& file, Trainer& trainer, const LossCurve& curve,
                     const GgufBytes& more = {});

/// Throws std::runtime_error, naming the step and the first tensor or loss that is not finite, or a
/// loss of 10^9 or more: the run has failed.
void expect_finite(Trainer& trainer, const LossCurve& curve);

/// The options in a checkpoint. The file is from outside: throws std::runtime_error, naming the
/// file and the key, for a value that is missing, of another type or out of range.
TrainingOptions read_options(const GgufFile& file);

/// Makes the trainer what it was, and returns the curve. Throws std::runtime_error, naming the file
/// and the tensor, for one that is missing, of another shape or type or not finite, and when there
/// are more or fewer tensors than wanted; the trainer must not be used then.
LossCurve read_checkpoint(const GgufFile& file, Trainer& trainer);

}  // namespace t2t
