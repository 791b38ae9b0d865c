// What a run learns from: the book's own pages, or a reader's files.
#pragma once

#include <filesystem>
#include <string>

namespace t2t {

/// All files of a folder that end in .md or .txt, in the order of their names, one after the other
/// with an empty line between. Of a page (.md) only the prose: no titles, tables and listings.
/// Throws std::runtime_error, naming the file, when one can't be read or is not UTF-8, and naming
/// the folder when there is none.
std::string text_of_folder(const std::filesystem::path& folder);

/// One file, whole. Throws as above, and when it is empty.
std::string text_of_file(const std::filesystem::path& file);

}  // namespace t2t
