// That no output takes the place of another file, whatever its name.
#include "files/named_files.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "files/files.hpp"
#include "support/refuses.hpp"

namespace t2t::named_files_test {

namespace fs = std::filesystem;

static const fs::path folder =
    fs::temp_directory_path() / ("t2t_named_files_" + std::to_string(getpid()));

/// Files a and b, links to a, and a link to the folder.
struct Files {
  Files() {
    fs::create_directories(folder / "in");
    write_file(folder / "a", "a");
    write_file(folder / "b", "b");
    fs::create_symlink("a", folder / "link");
    fs::create_hard_link(folder / "a", folder / "hard");
    fs::create_directory_symlink(".", folder / "again");
  }
  ~Files() { fs::remove_all(folder); }
};

static NamedFile file(const char* flag, const fs::path& name, NamedFile::Use use) {
  return {flag, folder / name, use};
}

static std::string both(const std::string& flags, const fs::path& name) {
  return flags + ": wanted different files, got " + (folder / name).string() + " for both";
}
static std::string lies(const std::string& flags, const fs::path& name) {
  return flags + ": " + (folder / name).string() +
         " lies in the folder that is written to, and may be lost";
}

TEST_CASE("an output is no input, by any name") {
  const Files files;
  for (const char* same : {"a", "link", "hard", "./a", "in/../a", "again/a", "again/again/link"}) {
    CAPTURE(same);
    REFUSES(
        expect_apart({file("--in", same, NamedFile::read), file("--out", "a", NamedFile::written)}),
        both("--out and --in", same));
  }
  REFUSES(expect_apart({file("--f", "a", NamedFile::read), file("--f", "a", NamedFile::written)}),
          both("--f", "a"));
  for (const char* other : {"b", "new", "in/a", "again/b"})
    CHECK_NOTHROW(
        expect_apart({file("--in", "a", NamedFile::read), file("--in", "a", NamedFile::read),
                      file("--out", other, NamedFile::written)}));
}

TEST_CASE("an output that doesn't exist yet is no other output") {
  const Files files;
  for (const char* same : {"new", "./new", "again/new", "in/../new"})
    REFUSES(expect_apart(
                {file("--x", "new", NamedFile::written), file("--y", same, NamedFile::written)}),
            both("--x and --y", same));
  REFUSES(expect_apart({file("--x", "none/new", NamedFile::written),
                        file("--y", "none/./new/", NamedFile::filled)}),
          both("--x and --y", "none/./new/"));
  CHECK_NOTHROW(expect_apart(
      {file("--x", "new", NamedFile::written), file("--y", "in/new", NamedFile::written)}));
}

TEST_CASE("what is read does not lie in a folder where it would be written over") {
  const Files files;
  write_file(folder / "x.npy", "x");
  for (const char* name : {"a", "link", "again/hard", "x.npy", "./new"})
    REFUSES(
        expect_apart({file("--in", name, NamedFile::read), file("--run", "", NamedFile::filled)}),
        "--run and --in: " + (folder / name).string() +
            " lies in the folder that is written to, and may be lost");
  fs::create_hard_link(folder / "a", folder / "a.npy");
  for (const char* name : {"x.npy", "hard"})  // hard is a.npy, too
    REFUSES(expect_apart({file("--in", name, NamedFile::read),
                          file("--save", "again", NamedFile::npy_written)}),
            lies("--save and --in", name));
  REFUSES(expect_apart({file("--out", "in/new.npy", NamedFile::written),
                        file("--save", "in", NamedFile::npy_written)}),
          lies("--save and --out", "in/new.npy"));
  for (const char* name : {"b", "in"})
    CHECK_NOTHROW(expect_apart(
        {file("--in", name, NamedFile::read), file("--save", "again", NamedFile::npy_written)}));
}

}  // namespace t2t::named_files_test
