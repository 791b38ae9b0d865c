// One program at a time in a folder.
//
// A file in the folder is locked as long as the program lives: the system gives the lock back when
// the process ends, however it ends. The file itself stays, and says whose folder it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace t2t {

class FolderLock {
 public:
  /// Locks the file `name` in the folder, which must exist. A file that is not there is made, and
  /// says `says`. Throws std::runtime_error, naming the folder, when another program holds the lock
  /// or there are no locks on this file system; naming the file, when it can't be made or says
  /// something else. What was there is then as it was.
  FolderLock(const std::filesystem::path& folder, const std::string& name, std::string_view says);
  FolderLock(const FolderLock&) = delete;
  ~FolderLock();

  /// Whether the file was not there before.
  bool made() const { return made_; }
  /// For a caller that leaves the folder as it was.
  void remove_file();

 private:
  bool opened();
  bool locked();
  void expect_text(std::string_view says);
  [[noreturn]] void fail(std::string_view what);

  std::filesystem::path folder_, path_;
  int file_ = -1;
  bool made_ = false;
};

}  // namespace t2t
