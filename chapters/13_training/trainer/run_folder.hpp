// The folder of a run, which holds all of it: a run can be left alone, stopped and resumed.
//
//   model.gguf       the weights and the tokenizer, as chapter 10 and llama.cpp read them
//   state.gguf       the checkpoint
//   train.ids, held_out.ids    the text's tokens, each a 32-bit integer; mapped into memory
//   loss.csv, loss.svg         the curve
//   run.lock                   says that the folder is a run's (held_folder.hpp)
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "10_pretrained/file/mapped_file.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"
#include "13_training/trainer/checkpoint.hpp"

namespace t2t {

/// Names of the folder's files.
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path model() const { return path / "model.gguf"; }
  std::filesystem::path state() const { return path / "state.gguf"; }
  std::filesystem::path train() const { return path / "train.ids"; }
  std::filesystem::path held_out() const { return path / "held_out.ids"; }
  std::filesystem::path csv() const { return path / "loss.csv"; }
  std::filesystem::path svg() const { return path / "loss.svg"; }
  std::vector<std::filesystem::path> files() const {
    return {model(), state(), train(), held_out(), csv(), svg()};
  }
};

/// A tokenizer with a token for each byte, and one that ends a text: V = 257.
BpeTables byte_tokenizer();

/// Token ids in a file, mapped into memory, so that a text may be larger than memory.
class MappedIds {
 public:
  /// Throws std::runtime_error, naming the file, when it is not whole 32-bit integers or one of
  /// them is outside [0, V).
  MappedIds(const std::filesystem::path& file, std::size_t V);
  std::span<const int> ids() const { return ids_; }

 private:
  MappedFile file_;
  std::span<const int> ids_;
};
void save_ids(const std::filesystem::path& file, std::span<const int> ids);

/// What a run stores in its checkpoint beside the trainer's options and state: a run recognizes its
/// files by the checksums.
struct RunRecord {
  std::size_t every = 100;      // steps from one checkpoint to the next
  std::string train, held_out;  // checksums of the two texts' tokens
};
RunRecord record_of(std::span<const int> train, std::span<const int> held_out, std::size_t every);

/// Writes model, curve and checkpoint, the checkpoint last: a run killed between them resumes from
/// the last one, and writes all of them again. Throws std::runtime_error, naming the file, when one
/// can't be written, as expect_finite does, and std::invalid_argument as save_checkpoint does.
void save_run(const RunFolder& folder, Trainer& trainer, const BpeTables& tokenizer,
              const LossCurve& curve, const RunRecord& record = {});

/// Reads the record. Throws std::runtime_error, naming the file, unless the checkpoint is whole,
/// and the tokens and the model's sizes and tokenizer are those that it was written with.
RunRecord read_record(const RunFolder& folder, const GgufFile& model, const GgufFile& state);

/// Restores a trainer of the model's weights to its state at the checkpoint, and returns the curve.
/// The model may be of a later step, when the run was killed between the two files; otherwise
/// throws std::runtime_error, naming it, unless its weights are the checkpoint's. Then model and
/// curve are written as they were at the checkpoint, the model last: so they are again of one step,
/// and a folder that can't be written is noticed before any work.
LossCurve go_on(const RunFolder& folder, const GgufFile& model, const GgufFile& state,
                const BpeTables& tokenizer, Trainer& trainer);

}  // namespace t2t
