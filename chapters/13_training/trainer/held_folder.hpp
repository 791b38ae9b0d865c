// A run's folder, locked by one program: no other one writes there, and the reader's own files stay
// as they are.
#pragma once

#include <optional>

#include "13_training/trainer/run_folder.hpp"
#include "files/folder_lock.hpp"

namespace t2t {

class HeldFolder {
 public:
  /// For a new run. The folder must be new, empty or one in which a run had begun without reaching
  /// a checkpoint. Throws std::invalid_argument, naming it, for any other folder, and
  /// std::runtime_error, naming it, when it can't be made or another program is at work in it;
  /// nothing in it has then changed.
  static HeldFolder for_new_run(const RunFolder& folder);
  /// For a resumed run. Throws as above, and when there is no checkpoint.
  static HeldFolder for_old_run(const RunFolder& folder);

  /// Unless keep() was called, a new run has failed before its first checkpoint: its files are
  /// removed, and the folder if it was new.
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  void keep() { kept_ = true; }

 private:
  HeldFolder(const RunFolder& folder, bool new_folder, bool kept);

  RunFolder folder_;
  bool new_folder_, kept_;
  FolderLock lock_;
};

}  // namespace t2t
