// What every chapter's program shares: flags with --help, real text as input, --seed, --save, and
// one place that catches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "npy.hpp"
#include "tensor.hpp"

namespace t2t {

class Program {
 public:
  /// name: "02_normalization", also that of its page; says: what the reader will see, in a
  /// sentence.
  Program(std::string name, std::string says);
  ~Program();

  /// A flag --name with its default in value. A size is a whole number of at least `least`, a
  /// number finite.
  void size(const std::string& name, std::size_t& value, const std::string& help,
            std::size_t least = 1);
  void number(const std::string& name, float& value, const std::string& help);
  void word(const std::string& name, std::string& value, const std::string& help);
  /// The name of a file or folder, which may not be empty.
  void path(const std::string& name, std::string& value, const std::string& help,
            const std::string& type = "PATH");
  void yes(const std::string& name, bool& value, const std::string& help);
  /// A flag that takes one word after the other, up to `most`.
  void words(const std::string& name, std::vector<std::string>& values, int most,
             const std::string& help);
  /// Adds --text and --file: real text goes in, by default from the chapter's own page.
  void takes_text();

  /// Reads the flags (--seed and --save among them) and runs show. Whatever it throws becomes one
  /// line on stderr. Returns the exit status for main.
  int run(int argc, char** argv, const std::function<void()>& show);
  /// The same of a task that has an exit status of its own.
  int run_task(int argc, char** argv, const std::function<int()>& task);

  // While show or the task runs:

  std::size_t seed() const { return seed_; }
  /// Whether the flag was given, be it with its default; and whether any was but those named.
  bool given(const std::string& name) const;
  bool given_other_than(const std::vector<std::string>& names) const;
  /// The text, at most this many bytes of it. UTF-8 but for a character cut at the end.
  std::string text(std::size_t most_bytes) const;
  /// With --save DIR, writes DIR/name.npy; without, nothing.
  template <std::size_t N>
  void save(const std::string& name, const Tensor<N>& x) const {
    if (!folder_.empty()) save_npy(folder_ / (name + ".npy"), x);
  }
  void save(const std::string& name, const std::vector<int>& ids) const {
    if (!folder_.empty()) save_npy(folder_ / (name + ".npy"), ids);
  }

 private:
  std::string read_text() const;

  struct Parser;  // CLI11 costs 4 s to include: program.cpp alone pays it
  std::unique_ptr<Parser> parser_;
  std::string name_, given_text_, text_file_;
  mutable std::optional<std::string> text_;  // once it was asked for
  std::filesystem::path folder_;
  std::size_t seed_ = 1;
};

}  // namespace t2t
