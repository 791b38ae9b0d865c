// A file that has no name until it is whole.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace t2t {

/// "path: what: and the reason that the system gave last"
std::runtime_error file_failure(const std::filesystem::path& path, const char* what);

/// A new, empty file in the folder of `path`, which becomes `path` when keep() is called, and is
/// gone otherwise. No existing file or link is followed or replaced before that. The file has no
/// name meanwhile, so that nothing is left of it however the program ends; where the system can't
/// do that, it is named .partial-XXXXXX and may be left by a signal.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path) : NewFile(path.parent_path(), path) {}
  /// Throws std::runtime_error about path, with this refusal, when no file can be made in folder.
  NewFile(const std::filesystem::path& folder, const std::filesystem::path& path,
          const char* refusal = "can't be written");
  NewFile(const NewFile&) = delete;
  ~NewFile();

  void write(std::string_view bytes);
  /// Names it, with the permissions of a new file. Its bytes are on the disk before that: after a
  /// power failure the name leads to the old file or to all of the new one.
  void keep();

 private:
  bool give_a_name();

  std::filesystem::path folder_, path_;
  std::string name_;  // empty while it has none
  int file_ = -1;
};

}  // namespace t2t
