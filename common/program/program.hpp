// What the chapters' programs share: flags with --help, text as input, --seed, --save, and one
// place that catches exceptions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/named_files.hpp"
#include "files/npy.hpp"
#include "program/prose.hpp"
#include "program/solutions.hpp"
#include "program/tasks.hpp"
#include "tensor.hpp"

namespace t2t {

class Program {
 public:
  /// name: "02_normalization", which is also its page's name. says: one sentence for --help.
  Program(std::string name, std::string says);
  ~Program();

  /// Adds a flag --name, with its default in value. A size is an integer of at least `least`; a
  /// number must be finite.
  void size(const std::string& name, std::size_t& value, const std::string& help,
            std::size_t least = 1);
  void number(const std::string& name, float& value, const std::string& help);
  void word(const std::string& name, std::string& value, const std::string& help);
  /// Adds a flag for the name of a file or folder, which must not be empty. No output may take the
  /// place of another file that is named: see named_files.hpp.
  void input(const std::string& name, std::string& value, const std::string& help,
             const std::string& type = "FILE");
  void output(const std::string& name, std::string& value, const std::string& help,
              NamedFile::Use use = NamedFile::written);
  void yes(const std::string& name, bool& value, const std::string& help);
  /// Adds a flag that takes the names of up to `most` files or folders that are read.
  void inputs(const std::string& name, std::vector<std::string>& values, int most,
              const std::string& help, const std::string& type);
  /// Adds a flag that takes two files, one that is read and one that is written.
  void input_and_output(const std::string& name, std::vector<std::string>& values,
                        const std::string& help);
  /// Adds --text and --file. Without them the text is the prose of the chapter's page.
  void takes_text();

  /// Adds --solutions: prints the solutions to the chapter's pencil-and-paper problems, and does
  /// nothing else.
  void has_solutions(std::vector<Solution> (*of)());

  /// Reads the flags (also --seed and --save) and calls show. An exception becomes one line on
  /// stderr. Returns the exit status for main.
  int run(int argc, char** argv, const std::function<void()>& show);
  /// The same for a program with tasks: runs the one that the flags ask for. --seed and --save are
  /// flags like others here: a task takes them or not.
  int run_tasks(int argc, char** argv, const TaskTable& table);

  // While show or the task runs:

  std::size_t seed() const { return seed_; }
  bool given(const std::string& name) const;
  /// The first bytes of the text, at most this many. UTF-8, except that its last character may be
  /// cut.
  std::string text(std::size_t most_bytes) const;
  /// With --save DIR, writes DIR/name.npy; without it, does nothing.
  template <std::size_t N>
  void save(const std::string& name, const Tensor<N>& x) const {
    if (!folder_.empty()) save_npy(std::filesystem::path(folder_) / (name + ".npy"), x);
  }
  void save(const std::string& name, const std::vector<int>& ids) const {
    if (!folder_.empty()) save_npy(std::filesystem::path(folder_) / (name + ".npy"), ids);
  }

 private:
  void add_path(const std::string& name, std::string& value, const std::string& help,
                const std::string& type);
  void add_paths(const std::string& name, std::vector<std::string>& values, int most,
                 const std::string& help, const std::string& type);
  std::string page() const;  // whose prose is the text by default
  std::string read_text() const;
  std::vector<std::string> flags(bool only_given) const;
  std::vector<NamedFile> named_files(const Task& task) const;
  void print_solutions() const;
  int run_one(int argc, char** argv, const std::function<Task()>& choose);

  struct Parser;  // CLI11 takes 4 s to compile, so only program.cpp includes it
  std::unique_ptr<Parser> parser_;
  std::string name_, given_text_, text_file_;
  mutable std::optional<std::string> text_;  // read on first use
  std::string folder_;
  std::size_t seed_ = 1;
  std::vector<Solution> (*solutions_)() = nullptr;
  bool wants_solutions_ = false;
};

}  // namespace t2t
