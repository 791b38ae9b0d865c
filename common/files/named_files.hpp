// The files and folders that a program's flags name. An output must never destroy an input, or
// another output: all of them are compared before the first one is opened for writing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace t2t {

/// A file or folder, and what the program does with it.
struct NamedFile {
  enum Use {
    read,         // a file, or the files in a folder
    written,      // a file
    filled,       // a folder in which files are written, of whatever names
    npy_written,  // a folder in which .npy files are written, and no others
  };
  std::string flag;  // "--model"
  std::filesystem::path path;
  Use use;
};

/// Throws std::invalid_argument, with both flags and the file, when an output takes the place of
/// another file of this list. Two names are of one file if the system says so (of one device, with
/// one number): through links, hard links and mounts too. Of files that don't exist yet, folder and
/// name are compared. What lies in a folder that is filled would be lost there as well.
void expect_apart(const std::vector<NamedFile>& files);

}  // namespace t2t
