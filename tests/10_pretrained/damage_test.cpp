// What must be true of GGUF files from anywhere: each loads, or one line says what is wrong and
// where; nothing is made of a number that was not checked.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "09_language_model/language_model.hpp"
#include "10_pretrained/file/mapped_file.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "10_pretrained/small_file.hpp"
#include "files/files.hpp"
#include "random.hpp"
#include "support/refuses.hpp"

namespace t2t::damage_test {

using Bad = std::runtime_error;

static GgufFile parse(const std::vector<std::uint8_t>& bytes) { return GgufFile("x", bytes); }
static GgufFile parse(const GgufBytes& file) { return parse(file.bytes); }

TEST_CASE("files of another format, version or byte order are refused") {
  const auto of_version = [](std::uint32_t version) {
    return parse(GgufBytes().header(0, 0, version));
  };
  CHECK_NOTHROW(of_version(3));
  REFUSES_AS(of_version(1), "x: header: version 1, wanted 3", std::runtime_error);
  REFUSES_AS(of_version(2), "x: header: version 2, wanted 3", std::runtime_error);
  REFUSES_AS(of_version(4), "x: header: version 4, wanted 3", std::runtime_error);
  REFUSES_AS(of_version(0x03000000),
             "x: header: written by a big-endian machine, which is not read here",
             std::runtime_error);
  REFUSES_AS(parse(GgufBytes()), "x: header: is not a GGUF file", std::runtime_error);
  REFUSES_AS(parse(GgufBytes().raw("GGML1234")), "x: header: is not a GGUF file",
             std::runtime_error);
  REFUSES_AS(GgufFile::open("/nowhere/x.gguf"), "/nowhere/x.gguf: No such file or directory",
             std::runtime_error);
  REFUSES_AS(GgufFile::open(T2T_FIXTURES), T2T_FIXTURES ": is not a regular file",
             std::runtime_error);
  REFUSES_AS(GgufFile::open("/dev/null"), "/dev/null: is not a regular file", std::runtime_error);
}

/// What another process that reads this byte leaves on stderr, and its exit status; −1 for a
/// signal.
static std::pair<std::string, int> read_apart(const std::uint8_t& byte) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    _exit(*const_cast<const volatile std::uint8_t*>(&byte) == 'x' ? 7 : 8);
  }
  close(ends[1]);
  char said[512];
  const ssize_t count = read(ends[0], said, sizeof said);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {std::string(said, std::size_t(std::max<ssize_t>(count, 0))),
          WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST_CASE("a file of one byte is mapped; an empty one has no bytes, and is closed once") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_mapped_" + std::to_string(getpid()));
  write_file(path, "x");
  {
    const MappedFile one(path);
    REQUIRE(one.bytes().data() != nullptr);
    CHECK(one.bytes().size() == 1);
    CHECK(one.bytes()[0] == 'x');
  }
  write_file(path, "");
  std::optional<MappedFile> none(path);
  CHECK(none->bytes().empty());
  const int other = ::open(path.c_str(), O_RDONLY);  // has the number of the one that was closed
  none.reset();
  CHECK(::close(other) == 0);
  std::filesystem::remove(path);
}

TEST_CASE("a mapped file that becomes shorter is detected; reading past its end is fatal") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_mapped_" + std::to_string(getpid()));
  write_file(path, std::string(3 << 16, 'x'));
  const MappedFile file(path);
  const std::uint8_t& last = file.bytes().back();
  CHECK_NOTHROW(file.expect_whole());
  CHECK(read_apart(last) == std::pair(std::string(), 7));

  const std::string line = path.string() + ": became shorter while it was read";
  std::filesystem::resize_file(path, (3 << 16) - 1);
  REFUSES_AS(file.expect_whole(), line, std::runtime_error);
  CHECK(read_apart(last) == std::pair(std::string(), 8));  // a zero, where an x was
  std::filesystem::resize_file(path, 1 << 16);
  CHECK(read_apart(last) == std::pair(line + "\n", 1));
  std::filesystem::remove(path);
}

TEST_CASE("counts and lengths beyond the file are refused before anything is allocated") {
  const std::uint64_t huge = std::uint64_t(1) << 63;
  const auto one_entry = [] { return GgufBytes().header(0, 1); };
  REFUSES_AS(parse(GgufBytes().header(huge, 0)),
             "x: header: 9223372036854775808 tensors, where 8 bytes are left", std::runtime_error);
  REFUSES_AS(parse(GgufBytes().header(0, huge)),
             "x: header: 9223372036854775808 metadata entries, where 0 bytes are left",
             std::runtime_error);
  // A tensor takes at least 33 bytes of the directory, and 8 are the count of entries; an entry
  // takes at least 14.
  REFUSES_AS(parse(GgufBytes().header(1, 0).raw(std::string(24, 0))),
             "x: header: 1 tensors, where 32 bytes are left", std::runtime_error);
  REFUSES_AS(parse(GgufBytes().header(1, 0).raw(std::string(25, 0))),
             "x: tensor 1 of 1: a name of 0 bytes, wanted 1 to 64", std::runtime_error);
  REFUSES_AS(parse(one_entry().raw(std::string(13, 0))),
             "x: header: 1 metadata entries, where 13 bytes are left", std::runtime_error);
  CHECK_NOTHROW(parse(one_entry().entry("k", true)));
  REFUSES_AS(parse(one_entry().put(huge).raw("123456789")),
             "x: entry 1 of 1: a key of 9223372036854775808 bytes at byte 32, where 9 are left",
             std::runtime_error);
  REFUSES_AS(parse(one_entry().text("k").put(8u).put(~std::uint64_t(0))),
             "x: k: a string of 18446744073709551615 bytes at byte 45, where 0 are left",
             std::runtime_error);
  REFUSES_AS(parse(one_entry().text("k").put(9u).put(10u).put(huge / 4)),
             "x: k: an array of 2305843009213693952 values, where 0 bytes are left",
             std::runtime_error);
  REFUSES_AS(parse(one_entry().text("k").put(9u).put(9u).put(huge)),
             "x: k: an array inside an array is not read here", std::runtime_error);
  REFUSES_AS(parse(one_entry().text("k").put(13u).put(huge)),
             "x: k: value of type 13, wanted 0 to 12", std::runtime_error);
  REFUSES_AS(parse(GgufBytes().header(0, 2).entry("k", 1u).entry("k", 1u)),
             "x: k: this key occurs twice", std::runtime_error);
  REFUSES_AS(parse(one_entry().text("").put(4u).put(1u).put(1u)),
             "x: entry 1 of 1: a key of 0 bytes, wanted 1 to 65535", std::runtime_error);
  REFUSES_AS(parse(one_entry().text("\x1b\xff").put(4u).put(1u)),
             "x: entry 1 of 1: a key \"\\x1b\\xff\" is not UTF-8", std::runtime_error);
  REFUSES_AS(parse(one_entry().entry("general.alignment", 12u)),
             "x: general.alignment: wanted a power of two of at least 8, got 12",
             std::runtime_error);
}

/// A file whose directory holds one tensor, or that and another, and 64 bytes for them.
static GgufFile with_tensor(const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                            std::uint64_t offset, std::string_view second = "") {
  GgufBytes file;
  file.header(second.empty() ? 1 : 2, 0).tensor("w", sizes, type, offset);
  if (!second.empty()) file.tensor(second, {8}, 0, 0);
  return parse(file.pad().raw(std::string(64, 0)));
}

TEST_CASE("tensors that are outside the file, incomplete or overlapping are refused") {
  const std::uint64_t big = std::uint64_t(1) << 32;
  CHECK_NOTHROW(with_tensor({16}, 0, 0));
  CHECK_NOTHROW(with_tensor({8}, 0, 32, "v"));
  REFUSES_AS(with_tensor({17}, 0, 0), "x: w: 68 bytes at offset 0, where the file has 64",
             std::runtime_error);
  REFUSES_AS(with_tensor({8}, 0, 64), "x: w: 32 bytes at offset 64, where the file has 64",
             std::runtime_error);
  REFUSES_AS(with_tensor({8}, 0, big << 31),
             "x: w: 32 bytes at offset 9223372036854775808, where the file has 64",
             std::runtime_error);
  REFUSES_AS(with_tensor({8}, 0, 8), "x: w: offset 8 is no multiple of 32", std::runtime_error);
  REFUSES_AS(with_tensor({big, big}, 0, 0),
             "x: w: shape [4294967296, 4294967296] has more bytes than 63 bits count",
             std::runtime_error);
  REFUSES_AS(with_tensor({0, 4}, 0, 0), "x: w: a dimension of size 0", std::runtime_error);
  REFUSES_AS(with_tensor({}, 0, 0), "x: w: 0 dimensions, wanted 1 to 4", std::runtime_error);
  REFUSES_AS(with_tensor({1, 1, 1, 1, 1}, 0, 0), "x: w: 5 dimensions, wanted 1 to 4",
             std::runtime_error);
  REFUSES_AS(with_tensor({33}, 3, 0),
             "x: w: rows of 33, which is no multiple of the 32 weights of a Q4_1 block",
             std::runtime_error);
  REFUSES_AS(with_tensor({128}, 12, 0),
             "x: w: rows of 128, which is no multiple of the 256 weights of a Q4_K block",
             std::runtime_error);
  const auto expect_unread = [](std::uint32_t type, const std::string& name) {
    const std::string message =
        "x: w: " + name +
        " is not read here; wanted one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, "
        "Q8_0, Q4_K, Q5_K, Q6_K, BF16";
    REFUSES_AS(with_tensor({256}, type, 0), message, std::runtime_error);
  };
  expect_unread(10, "Q2_K");
  expect_unread(11, "Q3_K");
  expect_unread(5, "type 5");
  expect_unread(77, "type 77");
  REFUSES_AS(with_tensor({8}, 0, 0, "w"), "x: w: this name occurs twice", std::runtime_error);
  REFUSES_AS(with_tensor({8}, 0, 0, "v"), "x: v: its bytes are also those of w",
             std::runtime_error);
  REFUSES_AS(with_tensor({8}, 0, 32, std::string(65, 'n')),
             "x: tensor 2 of 2: a name of 65 bytes, wanted 1 to 64", std::runtime_error);
}

/// What a file from anywhere is put to, beyond its metadata and its tensors.
using Use = void (*)(const GgufFile& file);
static void as_tokenizer(const GgufFile& file) {
  read_tokenizer(file).encode("ab <|im_end|>", SpecialTokens::as_tokens);
}
static void as_model(const GgufFile& file) {
  try {
    const Model model = read_model(file);
    language_model(std::vector<int>{0, 1, 2}, model);
  } catch (const std::invalid_argument& error) {  // sizes that no model can have
    throw Bad(std::string("x: ") + error.what());
  }
}

/// What is wrong when a file from anywhere is put to all its uses; empty when nothing is. Any other
/// end than success or one line that names the file is a fault, and told.
static std::string use_all(const std::vector<std::uint8_t>& bytes, Use use, std::size_t& loaded) {
  try {
    const GgufFile file = parse(bytes);
    for (const GgufEntry& entry : file.metadata().entries()) value_text(entry);
    for (const GgufTensor& tensor : file.tensors()) {
      const std::size_t cols = tensor.shape.back();
      file.matrix(tensor.name, tensor.shape.size() == 1 ? 1 : tensor.shape[0], cols);
    }
    use(file);
    ++loaded;
  } catch (const std::runtime_error& error) {
    const std::string line = error.what();
    if (!line.starts_with("x: ") || line.find('\n') != std::string::npos || line.size() > 300)
      return "line: " + line;
  } catch (const std::exception& error) {
    return std::string("not a runtime_error: ") + error.what();
  }
  return {};
}

namespace {
/// Damaged files, and how they fared.
struct Damage {
  Random random{10};
  std::string fault;
  std::size_t tried = 0, loaded = 0;
  std::clock_t slowest = 0;

  void use(const std::vector<std::uint8_t>& bytes, Use as) {
    ++tried;
    const std::clock_t start = std::clock();  // of the processor: others may be at work here
    if (fault.empty()) fault = use_all(bytes, as, loaded);
    slowest = std::max(slowest, std::clock() - start);
  }

  /// Three bytes of the first ones become any others.
  void use_with_three_changed(std::vector<std::uint8_t> bytes, std::size_t first, Use as) {
    for (int i = 0; i < 3; ++i)
      bytes[std::size_t(random.next_uniform() * double(first))] =
          std::uint8_t(256 * random.next_uniform());
    use(bytes, as);
  }
};
}  // namespace

TEST_CASE("20,000 damaged files each load or give a one-line error, in little memory" *
          doctest::test_suite("slow")) {
  const std::vector<std::uint8_t> whole = small_file();
  Damage damage;
  damage.use(whole, as_tokenizer);
  CHECK(damage.loaded == 1);

  // Cut short at every place: only what stands before the last tensor's end can be missed.
  for (std::size_t size = 0; size < whole.size(); ++size)
    damage.use({&whole[0], &whole[0] + size}, as_tokenizer);
  CHECK(damage.loaded == 1);

  // Every byte, and every 4 and 8 bytes, replaced by what is likely to hurt; then several at once.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int byte : {0, 1, 9, 0x7f, 0x80, 0xff, int(whole[at]) ^ 1, int(whole[at]) ^ 0x40}) {
      std::vector<std::uint8_t> damaged = whole;
      damaged[at] = std::uint8_t(byte);
      damage.use(damaged, as_tokenizer);
    }
    for (const std::uint64_t value : {~0ull, 1ull << 63, 1ull << 61, 1ull << 32, 0xffffffffull}) {
      std::vector<std::uint8_t> damaged = whole;
      for (std::size_t i = 0; i < 8 && at + i < whole.size(); ++i)
        damaged[at + i] = std::uint8_t(value >> 8 * i);
      damage.use(damaged, as_tokenizer);
    }
  }
  while (damage.tried < 14000) damage.use_with_three_changed(whole, whole.size(), as_tokenizer);
  CHECK(damage.loaded > 1000);                 // weights may be any bytes
  CHECK(damage.loaded < damage.tried - 5000);  // and much of the rest is noticed

  // Files as they are met, of every type and architecture: their metadata and directory.
  for (const char* name : {"types", "k_quants", "llama3", "qwen2", "qwen3", "qwen3_untied"}) {
    const std::string bytes = read_file(fmt::format(T2T_FIXTURES "/{}.gguf", name));
    const std::vector<std::uint8_t> model(bytes.begin(), bytes.end());
    const std::size_t directory = std::size_t(parse(model).tensors()[0].bytes.data() - &model[0]);
    for (int i = 0; i < 950; ++i) damage.use_with_three_changed(model, directory, as_model);
    for (std::size_t i = 0; i < 50; ++i)
      damage.use({&model[0], &model[0] + i * model.size() / 50}, as_model);
  }
  CHECK(damage.tried == 20000);
  CHECK(damage.fault == "");
  CHECK(damage.slowest < CLOCKS_PER_SEC);
#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory back
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < 200 * 1024);
#endif
}

}  // namespace t2t::damage_test
