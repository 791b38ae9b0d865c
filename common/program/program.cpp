#include "program/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "files/files.hpp"
#include "memory.hpp"
#include "program/flag_values.hpp"
#include "program/print.hpp"
#include "utf8_start.hpp"

namespace t2t {

struct Program::Parser {
  CLI::App app;
  CLI::Option* text = nullptr;
  std::vector<std::function<void(std::vector<NamedFile>&)>> files = {};  // each adds a flag's own
};

Program::Program(std::string name, std::string says)
    : parser_(new Parser{CLI::App(says, name)}), name_(std::move(name)) {
  parser_->app.get_formatter()->column_width(30);
  parser_->app.set_help_flag("--help,-h", "print this help and exit");
}
Program::~Program() = default;

void Program::size(const std::string& name, std::size_t& value, const std::string& help,
                   std::size_t least) {
  const auto parse = [&value, flag = "--" + name, least](const std::string& text) {
    value = parse_size(flag, text, least);
  };
  parser_->app.add_option_function<std::string>("--" + name, parse, help)
      ->default_str(std::to_string(value))
      ->type_name("N");
}
void Program::number(const std::string& name, float& value, const std::string& help) {
  const auto parse = [&value, flag = "--" + name](const std::string& text) {
    value = parse_number(flag, text);
  };
  parser_->app.add_option_function<std::string>("--" + name, parse, help)
      ->default_str(fmt::format("{}", value))
      ->type_name("X");
}
void Program::word(const std::string& name, std::string& value, const std::string& help) {
  parser_->app.add_option("--" + name, value, help)->capture_default_str()->type_name("WORD");
}
static void expect_name(const std::string& flag, const std::string& text) {
  if (text.empty())
    throw std::invalid_argument(flag + ": wanted a file or folder, got an empty name");
}

void Program::add_path(const std::string& name, std::string& value, const std::string& help,
                       const std::string& type) {
  const auto take = [&value, flag = "--" + name](const std::string& text) {
    expect_name(flag, text);
    value = text;
  };
  parser_->app.add_option_function<std::string>("--" + name, take, help)
      ->default_str(value)
      ->type_name(type);
}
void Program::add_paths(const std::string& name, std::vector<std::string>& values, int most,
                        const std::string& help, const std::string& type) {
  const auto take = [&values, flag = "--" + name](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) expect_name(flag, text);
    values = texts;
  };
  parser_->app.add_option_function<std::vector<std::string>>("--" + name, take, help)
      ->expected(1, most)
      ->type_name(type);
}
void Program::input(const std::string& name, std::string& value, const std::string& help,
                    const std::string& type) {
  add_path(name, value, help, type);
  parser_->files.push_back([&value, flag = "--" + name](std::vector<NamedFile>& files) {
    files.push_back({flag, value, NamedFile::read});
  });
}
void Program::output(const std::string& name, std::string& value, const std::string& help,
                     NamedFile::Use use) {
  add_path(name, value, help, use == NamedFile::written ? "FILE" : "DIR");
  parser_->files.push_back([&value, flag = "--" + name, use](std::vector<NamedFile>& files) {
    files.push_back({flag, value, use});
  });
}
void Program::yes(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag("--" + name, value, help);
}

void Program::inputs(const std::string& name, std::vector<std::string>& values, int most,
                     const std::string& help, const std::string& type) {
  add_paths(name, values, most, help, type);
  parser_->files.push_back([&values, flag = "--" + name](std::vector<NamedFile>& files) {
    for (const std::string& value : values) files.push_back({flag, value, NamedFile::read});
  });
}
void Program::input_and_output(const std::string& name, std::vector<std::string>& values,
                               const std::string& help) {
  add_paths(name, values, 2, help, "IN OUT");
  parser_->files.push_back([&values, flag = "--" + name](std::vector<NamedFile>& files) {
    for (std::size_t i = 0; i < values.size(); ++i)
      files.push_back({flag, values[i], i == 0 ? NamedFile::read : NamedFile::written});
  });
}

/// What the task's flags name, given or by default.
std::vector<NamedFile> Program::named_files(const Task& task) const {
  std::vector<NamedFile> files;
  for (const auto& add : parser_->files) add(files);
  if (parser_->text && parser_->text->count() == 0 && text_file_.empty())
    files.push_back({"--text", page(), NamedFile::read});
  std::erase_if(files, [&](const NamedFile& file) {
    const std::string flag = file.flag.substr(2);
    return file.path.empty() || (flag != task.flag && !std::ranges::count(task.takes, flag));
  });
  return files;
}

bool Program::given(const std::string& name) const {
  return parser_->app.get_option("--" + name)->count() > 0;
}

/// The names of all flags, or of those that were given, without "--".
std::vector<std::string> Program::flags(bool only_given) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_->app.get_options())
    if (!only_given || option->count() > 0) names.push_back(option->get_single_name());
  return names;
}

void Program::has_solutions(std::vector<Solution> (*of)()) {
  solutions_ = of;
  yes("solutions", wants_solutions_,
      "print the solutions to the chapter's pencil-and-paper problems");
}

void Program::print_solutions() const {
  if (const auto all = flags(true); all.size() > 1)
    throw std::invalid_argument("--solutions: wanted no other flag with it, got --" +
                                (all.front() == "solutions" ? all.back() : all.front()));
  for (const Solution& solution : solutions_()) {
    print_section(solution.problem);
    print_paragraph(solution.text);
  }
}

void Program::takes_text() {
  CLI::App& app = parser_->app;
  parser_->text = app.add_option("--text", given_text_,
                                 "the text to use (by default the prose of the chapter's page)")
                      ->type_name("TEXT");
  input("file", text_file_, "a file of UTF-8 text to use, at most its first 16 MiB");
  app.get_option("--file")->excludes(parser_->text);
}

std::string Program::page() const { return T2T_SOURCE_DIR "/docs/" + name_ + ".md"; }

/// The whole text. It is read once, since a pipe can't be read twice.
std::string Program::read_text() const {
  constexpr std::size_t most = 16 << 20;
  std::string text, source;
  if (parser_->text->count() > 0) {
    text = given_text_, source = "--text";
  } else if (!text_file_.empty()) {
    text = read_file(text_file_, most), source = text_file_;
  } else {
    source = page();
    text = prose(read_text_file(source));
  }
  expect_utf8(source, text, text.size() == most);
  if (text.empty())
    throw std::invalid_argument(source + ": the text is empty, wanted at least one byte");
  return text;
}

std::string Program::text(std::size_t most_bytes) const {
  if (!text_) text_ = read_text();
  return text_->substr(0, most_bytes);
}

/// Makes the folder. Throws, before any work, when no file can be made in it.
static void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error("--save: " + folder.string() + ": " + error.message());
  expect_room_for_files(folder);
}

/// Why standard output can't be written: the error of one more byte, since that of the write which
/// failed first may have been a long time ago.
static std::string why_not_written() {
  std::clearerr(stdout);
  errno = 0;
  const bool written = std::fputc('\n', stdout) != EOF && std::fflush(stdout) == 0;
  return std::strerror(written || errno == 0 ? EIO : errno);
}

/// Throws when output was lost, as on a full disk or in a closed pipe.
static void expect_printed() {
  std::cout << std::flush;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout)
    throw std::runtime_error("standard output can't be written: " + why_not_written());
}

/// Returns false when --help was given; help is printed then.
static bool parsed(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  }
}

int Program::run(int argc, char** argv, const std::function<void()>& show) {
  return run_one(argc, argv, [&] { return Task{"", flags(false), [&] { return show(), 0; }}; });
}

int Program::run_tasks(int argc, char** argv, const TaskTable& table) {
  return run_one(argc, argv, [&] {
    const Task& task = chosen_task(table, flags(true));
    return Task{task.flag, task.takes, [&] {
                  if (table.check) table.check();
                  return task.run();
                }};
  });
}

int Program::run_one(int argc, char** argv, const std::function<Task()>& choose) {
  CLI::App& app = parser_->app;
  size("seed", seed_, "seed of all random numbers");
  output("save", folder_, "write what is computed to DIR, as .npy files", NamedFile::npy_written);
  const double free = free_memory();
  limit_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large (ulimit -f) is an error like others
  try {
    if (!parsed(app, argc, argv)) return expect_printed(), 0;
    if (wants_solutions_) return print_solutions(), expect_printed(), 0;
    const Task task = choose();
    expect_apart(named_files(task));
    if (!folder_.empty()) make_folder(folder_);
    const int status = task.run();
    expect_printed();
    return status;
  } catch (const CLI::ParseError& error) {
    std::cerr << name_ << ": " << printable(error.what(), 2 * most_quoted_of_a_flag)
              << " (--help lists the flags)\n";
  } catch (const std::bad_alloc&) {
    std::cerr << name_ << ": not enough memory for these sizes: " << bytes_text(free)
              << " were free; make them smaller\n";
  } catch (const std::exception& error) {
    std::cerr << name_ << ": " << printable(error.what(), std::string::npos) << '\n';
  }
  return 1;
}

}  // namespace t2t
