// What must be true of the tensor core, so that no chapter meets the traps below it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <limits>

#include "files/files.hpp"
#include "files/npy.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "program/print.hpp"
#include "random.hpp"
#include "rows.hpp"
#include "shapes.hpp"
#include "support/additions.hpp"
#include "support/all_close.hpp"
#include "support/apart.hpp"
#include "support/refuses.hpp"
#include "utf8_start.hpp"

// Stands before the system's own fsync, so that a check can see when it is called and answer with
// an error. Without an answer it does what it should.
static std::function<int(bool of_folder)> answer_to_sync;
extern "C" int fsync(int file) {
  struct stat what {};
  if (!answer_to_sync || fstat(file, &what) != 0) return int(syscall(SYS_fsync, file));
  errno = answer_to_sync(S_ISDIR(what.st_mode));
  return errno == 0 ? 0 : -1;
}

// Null unless the program has loaded a BLAS.
extern "C" [[gnu::weak]] void cblas_sgemm();

namespace t2t::common_test {

static constexpr float infinity = std::numeric_limits<float>::infinity();
static constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A sum of K products, each rounded: at most (K + 1) · 2^-24 of the sum of their sizes (here up to
// 4 deviations each, so 16 K).
static double bound(std::size_t K) { return double(K + 1) * 0x1p-24 * 16 * double(K); }

static Tensor<2> some(std::size_t rows, std::size_t cols) {
  return Random(rows * 1000 + cols).normal<2>({rows, cols});
}

/// a·b or a·bᵀ in double, by three loops.
static Tensor<2> product(ConstMatrix a, ConstMatrix b, bool transposed) {
  Tensor<2> y = empty(a.rows, transposed ? b.rows : b.cols);
  for (std::size_t m = 0; m < y.shape(0); ++m)
    for (std::size_t n = 0; n < y.shape(1); ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < a.cols; ++k)
        sum += double(a.row(m)[k]) * (transposed ? b.row(n)[k] : b.row(k)[n]);
      y(m, n) = float(sum);
    }
  return y;
}

TEST_CASE("products equal three loops, at odd sizes and at sizes of one") {
  const std::array<std::size_t, 3> sizes[] = {{1, 1, 1}, {1, 7, 5},    {5, 1, 3},
                                              {4, 3, 1}, {31, 17, 96}, {1, 129, 577}};
  for (const auto& [M, N, K] : sizes) {
    const Tensor<2> a = some(M, K), b = some(K, N), b_t = some(N, K);
    CAPTURE(a.shape(0));
    CAPTURE(b.shape(1));
    CAPTURE(b.shape(0));
    CHECK(all_close(matmul(a, b), product(a, b, false), bound(K)));
    CHECK(all_close(matmul_bt(a, b_t), product(a, b_t, true), bound(K)));
  }
}

TEST_CASE("a product of matrices that start at one address is no special case") {
  const Tensor<2> x = some(4, 6);
  const ConstMatrix first = ConstMatrix(x).rows_from(0, 2);
  Tensor<2> y = empty(2, 4);
  matmul_bt(first, x, y);
  CHECK(all_close(y, product(first, x, true), bound(6)));
}

TEST_CASE("a head inside [T, H·D] and the used rows of a cache are read and written in place") {
  const std::size_t T = 5, H = 3, D = 8, S = 7;
  const Tensor<2> q = some(T, H * D), cache = some(20, D);
  Tensor<2> scores = xt::ones<float>({T, 2 * S});
  const ConstMatrix q_1 = ConstMatrix(q).head(1, D), k = ConstMatrix(cache).rows_from(0, S);
  matmul_bt(q_1, k, Matrix(scores).cols_from(S, S), 0.5f);

  const Tensor<2> want = 0.5f * product(q_1, k, true);
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t s = 0; s < S; ++s) {
      CHECK(std::abs(scores(t, S + s) - want(t, s)) <= bound(D));
      CHECK(scores(t, s) == 1);  // nothing beside the view is touched
    }
}

TEST_CASE("stacks are multiplied matrix by matrix") {
  const Tensor<3> a = Random(1).normal<3>({3, 4, 5}), b = Random(2).normal<3>({3, 6, 5});
  const Tensor<3> y = matmul_bt(a, b);
  for (std::size_t h = 0; h < 3; ++h) {
    const Tensor<2> want = product(matrix(a, h), matrix(b, h), true);
    for (std::size_t i = 0; i < want.size(); ++i)
      CHECK(std::abs(matrix(y, h).data[i] - want.data()[i]) <= bound(5));
  }
  REFUSES(matmul(a, b), "b: wanted shape [3, 5, 5], got [3, 6, 5]");
}

TEST_CASE("a product inside a task ends, whatever number of threads was asked for") {
  const int before = omp_get_max_threads();
  const Tensor<3> a = xt::ones<float>({4, 192, 64}), want = 64 * xt::ones<float>({4, 192, 192});
  for (const int threads : {1, 2}) {
    set_threads(threads);
    CHECK(all_close(matmul_bt(a, a), want, 0));
  }
  set_threads(before);
}

TEST_CASE("rows are added to rows, in a part of a larger matrix too") {
  Tensor<2> x = some(5, 7);
  const Tensor<2> before = x, added = some(3, 4);
  add_rows(added, Matrix(x).rows_from(1, 3).cols_from(2, 4));
  for (std::size_t t = 0; t < 5; ++t)
    for (std::size_t c = 0; c < 7; ++c) {
      const bool inside = t >= 1 && t < 4 && c >= 2 && c < 6;
      CHECK(x(t, c) == before(t, c) + (inside ? added(t - 1, c - 2) : 0));
    }
  REFUSES(add_rows(added, x), "added: wanted shape [5, 7], got [3, 4]");
}

TEST_CASE("products refuse shapes that don't meet") {
  const Tensor<2> a = some(2, 3), b = some(4, 5);
  Tensor<2> y = empty(2, 4);
  REFUSES(matmul_bt(a, b, y), "b: wanted shape [4, 3], got [4, 5]");
  REFUSES(matmul(a, some(3, 5), y), "y: wanted shape [2, 5], got [2, 4]");
}

TEST_CASE("products are a BLAS's, which waits for our threads and does not fight them") {
  CHECK((cblas_sgemm != nullptr));  // xtensor-blas has slow loops of its own to fall back on
  CHECK(blas_info().threading != "pthreads");
}

TEST_CASE("a reduction left lazy is evaluated for every element; given a type, once") {
  const Tensor<2> x = some(4, 32);
  std::size_t evaluated = 0;
  const auto counted = [&evaluated](const Tensor<2>& of) {
    return xt::make_lambda_xfunction([&evaluated](float v) { return ++evaluated, v; }, of);
  };
  const Tensor<2> lazy = x - xt::view(xt::mean(counted(x), {1}), xt::all(), xt::newaxis());
  CHECK(evaluated == 4 * 32 * 32);

  evaluated = 0;
  const Tensor<1> mean = xt::mean(counted(x), {1});
  const Tensor<2> typed = x - as_column(mean);
  CHECK(evaluated == 4 * 32);
  CHECK(all_close(lazy, typed, 1e-6));
}

TEST_CASE("empty() takes sizes, never values") {
  CHECK(empty(2, 3).shape(1) == 3);
  CHECK(empty(5).shape(0) == 5);
}

TEST_CASE("storage begins where a cache line does, whoever made it") {
  const auto line_offset = [](const auto& x) {
    return reinterpret_cast<std::uintptr_t>(x.data()) % 64;
  };
  for (std::size_t C = 1; C < 40; ++C) {
    const Tensor<1> x = xt::zeros<float>({C});
    const Tensor<2> y = as_column(x) * 2.0f;
    Tensor<3> z = empty(2, 3, C);
    CHECK(line_offset(x) == 0);
    CHECK(line_offset(y) == 0);
    CHECK(line_offset(z) == 0);
  }
}

#if defined(XTENSOR_ENABLE_ASSERT)
TEST_CASE("an index out of range throws in debug builds") {
  const Tensor<2> x = some(2, 3);
  CHECK_THROWS(x(5, 7));
}
#endif

TEST_CASE("all_close lets no NaN pass and needs equal shapes") {
  const Tensor<1> good = {1, 2}, bad = {1, not_a_number};
  CHECK_FALSE(all_close(bad, good, 1e9));
  CHECK_FALSE(all_close(good, bad, 1e9));
  CHECK_FALSE(all_close(good, Tensor<1>{1, 2, 3}, 1e9));
  CHECK(all_close(good, good, 0));
  CHECK(std::isnan(not_a_number + infinity));  // and no fast-math assumes it away
}

TEST_CASE("a failed comparison shows small results, and of larger ones where they are wrong") {
  Tensor<2> got = {{1, 2}, {3, not_a_number}}, want = {{1, 2}, {4, 4}};
  const std::string small = all_close(got, want, 0.5).report;
  CHECK(small.find("element [1, 0]: got 3, want 4 (worst nan, bound 0.5)") == 0);
  CHECK(small.find("want         1         2") != small.npos);

  got = want = xt::zeros<float>({100, 200});
  got(90, 150) = 1;
  got(91, 151) = not_a_number;
  const std::string large = all_close(got, want, 0.5).report;
  CHECK(large.find("rows 88 to 95 of 100, columns 134 to 197 of 200") != large.npos);
  CHECK(std::ranges::count(large, 'x') == 2);  // one number, and the legend's
  CHECK(large.find('?') != large.rfind('?'));
}

TEST_CASE("a refusal in other words names the value and has a number of what it got") {
  const std::string eps = "eps: wanted 0 or more, got -0.5";
  CHECK(names_the_same("a negative eps (-0.500000) has no root", eps));
  CHECK_FALSE(names_the_same("a negative eps has no root", eps));
  CHECK_FALSE(names_the_same("gain must not be -0.5", eps));
  CHECK(names_the_same("without a gate there is no glu", "activation: wanted no gate, got glu"));
  CHECK_FALSE(names_the_same("there must be one", "network: wanted two, got one"));
  CHECK(names_the_same("w_up is 7x6, not 7x7", "w_up: wanted shape [7, 7], got [7, 6]"));
  CHECK_FALSE(names_the_same("w_upper is 7x6", "w_up: wanted shape [7, 7], got [7, 6]"));
  CHECK(names_the_same("x has 8 columns", "columns of x: wanted a multiple of D = 6, got 8"));
  CHECK(names_the_same("x.cols: 8", "columns of x: wanted a multiple of D = 6, got 8"));
  CHECK(names_the_same("positions from 8 on, T = 3, do not fit in S = 10",
                       "position 10: the table ends at 9"));
  const std::string heads = "heads: wanted a number H that divides C = 8, got H = 3";
  CHECK(names_the_same("H = 3 does not divide C = 8", heads));
  CHECK_FALSE(names_the_same("3 does not divide 8", heads));
  CHECK(names_the_same("stop 61 lies outside the ids 0 to 60",
                       "stop tokens: wanted ids in [0, 61), got 61"));
  const std::string norms = "norms: wanted RMSNorms, alike in all layers";
  CHECK(names_the_same(norms, norms));
  CHECK(names_the_same("the norms have to be alike", norms));
  const std::string w_q = "w_q: wanted shape [12, 10], got [14, 9]";
  CHECK(names_the_same("rows of w_q: wanted a multiple of H = 4, got 14", w_q));
  CHECK_FALSE(names_the_same("rows of w_q: wanted a multiple of H = 4, got 13", w_q));
  CHECK(names_the_same("T: wanted at most 2, the rows left of S = 10, got 3",
                       "cache: length 8 and T = 3 more positions, wanted at most S = 10 in all"));
  CHECK(names_the_same("options.network is empty", "network: wanted one, got none"));
  CHECK_FALSE(names_the_same("a networked model is empty", "network: wanted one, got none"));
  CHECK(names_the_same("row 1 has only -infinity", "softmax: row 1 is all -infinity: a mask"));
  CHECK(names_the_same("the scratch has room for 1 x 7",
                       "scratch.up: wanted at least [2, 7], got [1, 7]"));
  CHECK_FALSE(names_the_same("got 1 and 7", "scratch.up: wanted at least [2, 7], got [1, 7]"));
  CHECK(names_the_same("C should be at least 1 and is 0", "x: wanted at least 1 channel, got 0"));
  CHECK(names_the_same("C: wanted 1 or more, got 0", "x: wanted at least 1 channel, got 0"));
  CHECK_FALSE(names_the_same("C: wanted 1 or more", "x: wanted at least 2 channels, got 0"));
  CHECK(names_the_same("T = 3 is more than S = 2", "causal mask: wanted T <= S, got 2 and 3"));
  CHECK(names_the_same("table.sin: 2 columns", "table.cos: wanted shape [10, 4], got [10, 2]"));
  CHECK_FALSE(names_the_same("table.sin: 4, 10", "table.cos: wanted shape [10, 4], got [10, 2]"));
  CHECK_FALSE(names_the_same("w: 4", "w: wanted shape [4, 10], got [10, 4]"));
  const char* const gate = "shared_gate: wanted shape [1, 12], got [1, 11]";
  CHECK(names_the_same("the gate of the shared network is [1, 11]", gate));
  CHECK_FALSE(names_the_same("the gate is [1, 11]", gate));
  CHECK(names_the_same("the type must be packed", "type: wanted Q4_0 or Q8_0, got BF16"));
}

TEST_CASE("rows: sums, largest and functions equal plain loops at every length") {
  for (std::size_t C = 1; C < 200; C += (C < 70 ? 1 : 13)) {
    CAPTURE(C);
    const Tensor<1> x = Random(C).normal<1>({C});
    double sum = 0, squares = 0;
    float largest = -infinity;
    for (const float v : x) sum += v, squares += double(v) * v, largest = std::max(largest, v);
    CHECK(std::abs(sum_row(row(x)) - sum) <= bound(C));
    CHECK(std::abs(sum_of_squares(row(x)) - squares) <= bound(C));
    CHECK(max_row(row(x)) == largest);

    Tensor<1> y = xt::ones<float>({C + 1});
    const auto twice = [](Lanes v) { return v + v; };
    map_row(row(y).first(C), twice, row(x));
    for (std::size_t c = 0; c < C; ++c) CHECK(y(c) == x(c) + x(c));
    const auto less = [](Lanes v, Lanes w) { return v - w; };
    map_row(row(y).first(C), less, row(y), row(x));
    for (std::size_t c = 0; c < C; ++c) CHECK(y(c) == x(c));  // x + x is exact, so is x + x − x
    CHECK(y(C) == 1);                                         // nothing behind the row is touched
  }
  CHECK(max_row({}) == -infinity);
}

TEST_CASE("rows: the error of a long sum stays as small with few lanes as with many") {
  constexpr double u = 0x1p-24;
  for (const std::size_t C : {1023, 1024, 1025, 2048, 2049, 5000, 1'000'003}) {
    CAPTURE(C);
    const Tensor<1> x = Random(C).uniform<1>({C}, 0.9f, 1.1f);
    double sum = 0, squares = 0;
    for (const float v : x) sum += double(v), squares += double(v) * double(v);
    CHECK(std::abs(double(sum_row(row(x))) - sum) <= additions(C) * u * sum);
    CHECK(std::abs(double(sum_of_squares(row(x))) - squares) <= (additions(C) + 1) * u * squares);
  }
}

TEST_CASE("every row and every task is visited once") {
  std::vector<int> rows(1000, 0), tasks(1000, 0);
  for_each_row(rows.size(), 1000, [&](std::size_t t) { ++rows[t]; });
  for_each_task(tasks.size(), worth_sharing, [&](std::size_t i, std::size_t thread) {
    tasks[i] += thread < thread_count() ? 1 : 100;
  });
  CHECK(std::ranges::count(rows, 1) == 1000);
  CHECK(std::ranges::count(tasks, 1) == 1000);
}

TEST_CASE("a seed gives the same numbers everywhere, with the right mean and deviation") {
  CHECK(Random(1).next_uniform() == double(0x910a2dec89025cc1 >> 11) * 0x1p-53);  // SplitMix64(1)
  // A run that is resumed draws what it would have drawn, so these factors stay.
  CHECK(seed_of(SeedOf::step, 3, 5) == 0xdb452b71963fceda);
  CHECK(seed_of(SeedOf::stream, 3, 5) == 0x739c6fcb9b88cec4);
  CHECK(seed_of(SeedOf::row, 3, 5) == 0x0d6f50db12d07124);
  CHECK(Random(3, 5).next_uniform() == Random(0x739c6fcb9b88cec4).next_uniform());
  const Tensor<1> a = Random(7).normal<1>({10000}, 2, 1), b = Random(7).normal<1>({10000}, 2, 1);
  CHECK(all_close(a, b, 0));
  const Tensor<0> mean = xt::mean(a), deviation = xt::stddev(a);
  CHECK(std::abs(mean() - 1) < 5 * 2 / std::sqrt(10000.0));           // 5 deviations of a mean
  CHECK(std::abs(deviation() - 2) < 5 * 2 / std::sqrt(2 * 10000.0));  // and of a deviation
}

TEST_CASE(".npy: what is saved is loaded; what is malformed is refused, with its name") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "t2t_npy_test";
  std::filesystem::create_directories(folder);
  const auto file = folder / "x.npy";
  const Tensor<3> x = Random(1).normal<3>({2, 3, 5});
  save_npy(file, x);
  CHECK(all_close(load_npy<3>(file), x, 0));
  CHECK_THROWS_AS(load_npy<2>(file), std::runtime_error);
  save_npy(file, std::vector<int>{3, 1, 2});
  CHECK(load_npy_ints(file) == std::vector<int>{3, 1, 2});
  CHECK_THROWS_AS(load_npy<1>(file), std::runtime_error);  // int32, not float32

  const auto refused = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    std::string says;
    try {
      load_npy_floats(file);
    } catch (const std::runtime_error& error) {
      says = error.what();
    }
    CHECK(says.starts_with(file.string() + ": "));
    CHECK(std::ranges::none_of(says, [](unsigned char c) { return c < 0x20; }));
  };
  const auto with = [](std::string_view descr, std::string_view order, std::string_view shape) {
    const std::string header = fmt::format(
        "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}\n", descr, order, shape);
    return std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header + "abcdefgh";
  };
  std::ofstream(file, std::ios::binary) << with("<f4", "False", "2,");
  CHECK(load_npy<1>(file).size() == 2);
  refused("");
  refused("something else altogether");
  refused(with("<f4", "False", "2,").substr(0, 9));
  refused(with("<f4", "False", "2,").substr(0, 40));
  refused(with("<f4", "False", "3,"));                          // more than there is
  refused(with("<f4", "False", "1,"));                          // less than there is
  refused(with("<f4", "False", "4294967296, 4294967296, 4,"));  // a count that overflows
  refused(with("<f4", "False", "99999999999999999999999999,"));
  refused(with("<f4", "True", "2,"));
  refused(with("<f8", "False", "1,"));
  refused(with("<f4", "False", "-2,"));
  refused(with("\033[2J", "False", "2,"));  // would clear a terminal, were it quoted
  refused(std::string("\x93NUMPY\x01\x00\xff\xff", 10) + "{'descr': '" + std::string(65524, 'a'));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file appears whole or not at all, and errors name it") {
  CHECK_THROWS_WITH(read_file("/no/such/file"),
                    "/no/such/file: can't be read: No such file or "
                    "directory");
  CHECK_THROWS_WITH(read_file("/"), "/: is a folder, wanted a file");
  CHECK_THROWS_AS(write_file("/no/such/folder/x", "x"), std::runtime_error);

  // What has the names that are written beside it stays: only the file itself is replaced.
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "t2t_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto names = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  write_file(folder / "x.partial", "mine");
  for (const std::string bytes : {"one", "two", ""}) {
    write_file(folder / "x", bytes);
    CHECK(read_file(folder / "x") == bytes);
    CHECK(read_file(folder / "x", 2) == bytes.substr(0, 2));
  }
  if (std::filesystem::exists("/dev/zero")) {
    CHECK(read_file("/dev/zero", 3) == std::string(3, '\0'));
    CHECK_THROWS_WITH(read_file("/dev/zero"),
                      "/dev/zero: wanted at most 64 MiB from a pipe or device, got more");
  }
  expect_room_for_files(folder);
  CHECK(read_file(folder / "x.partial") == "mine");
  CHECK(names() == 2);
  std::filesystem::create_symlink("x.partial", folder / "link");
  CHECK_THROWS_AS(write_file(folder / "link", "other"), std::runtime_error);
  CHECK_THROWS_AS(write_file(folder, "other"), std::runtime_error);
  CHECK(read_file(folder / "x.partial") == "mine");
  CHECK(names() == 3);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file gets its name when its bytes are on the disk; on a full one the old file stays") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "t2t_synced";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::filesystem::path file = folder / "x";
  const auto names = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  write_file(file, "old");

  // The file is synced under another name, then the folder, which has the new name.
  std::vector<bool> folders;
  answer_to_sync = [&](bool of_folder) {
    folders.push_back(of_folder);
    CHECK(read_file(file) == (of_folder ? "new" : "old"));
    return 0;
  };
  write_file(file, "new");
  CHECK((folders == std::vector<bool>{false, true}));

  int interrupted = 2;
  answer_to_sync = [&](bool) { return interrupted-- > 0 ? EINTR : 0; };
  CHECK_NOTHROW(write_file(file, "newer"));
  CHECK(interrupted == -2);
  answer_to_sync = [](bool) { return ENOSPC; };
  REFUSES_AS(write_file(file, "other"),
             file.string() + ": can't be written: No space left on device", std::runtime_error);
  CHECK(read_file(file) == "newer");
  CHECK(names() == 1);

  // Some file systems have no such call for folders.
  answer_to_sync = [](bool of_folder) { return of_folder ? EINVAL : 0; };
  CHECK_NOTHROW(write_file(file, "newest"));
  answer_to_sync = [](bool of_folder) { return of_folder ? EIO : 0; };
  REFUSES_AS(write_file(file, "last"),
             file.string() + ": is written, but may be lost: Input/output error",
             std::runtime_error);
  CHECK(read_file(file) == "last");
  answer_to_sync = nullptr;

  const std::string ended = ending_apart([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &small);
    write_file(file, std::string(4000, 'x'));
  });
  CHECK(ended == "threw: " + file.string() + ": can't be written: File too large");
#ifdef O_TMPFILE
  // However the program ends, where the file system knows files without a name.
  const int nameless = open(folder.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless >= 0) {
    const std::string killed = ending_apart([&] {
      write_file(file, [](const WriteBytes& write) { write("half"), std::raise(SIGKILL); });
    });
    CHECK(killed == "signal 9");
    CHECK(names() == 1);
    close(nameless);
  }
#endif
  CHECK(read_file(file) == "last");
  CHECK(names() == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("UTF-8 is checked to the letter, and a wrong byte is named with its offset") {
  for (const std::string good : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82"})
    CHECK_NOTHROW(expect_utf8("text", good));
  CHECK_THROWS_WITH(expect_utf8("text", "ab\xff"),
                    "text: byte 0xff at offset 2 is not UTF-8; save the text as UTF-8");
  for (const std::string bad : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80",
                                "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc3("})
    CHECK_THROWS_AS(expect_utf8("text", bad), std::runtime_error);
  for (const std::string cut : {"ab\xc3", "\xe2\x82", "\xf0\x9f\x99"})
    CHECK_NOTHROW(expect_utf8("text", cut, true));
  for (const std::string bad : {"\x80", "\xc3(", "\xff", "\xc3(a"})
    CHECK_THROWS_AS(expect_utf8("text", bad, true), std::runtime_error);
}

TEST_CASE("a text file's lines end with \\n, whatever the file has, and offsets are the file's") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "t2t_text_file";
  const auto read = [&](const std::string& bytes) {
    write_file(file, bytes);
    return read_text_file(file);
  };
  for (const std::string same : {"", "a", "a\n\nb\n", "\n", "é\tb"}) CHECK(read(same) == same);
  CHECK(read("a\r\n\r\nb\r\n") == "a\n\nb\n");
  CHECK(read("a\r\rb\r") == "a\n\nb\n");
  CHECK(read("\n\r\r\n") == "\n\n\n");
  CHECK(read("\ufeff"
             "a\ufeff\r\n") == "a\ufeff\n");
  CHECK_THROWS_WITH(
      read("\ufeff"
           "a\r\n\xff"),
      (file.string() + ": byte 0xff at offset 6 is not UTF-8; save the text as UTF-8").c_str());
  std::filesystem::remove(file);
}

TEST_CASE("shapes are named with what was wanted and what came") {
  const Tensor<2> x = some(2, 3);
  CHECK_NOTHROW(expect_shape("x", x, {2, 3}));
  REFUSES(expect_shape("x", x, {2, 4}), "x: wanted shape [2, 4], got [2, 3]");
  REFUSES(expect(false, "--width", "an even number", 7), "--width: wanted an even number, got 7");
  REFUSES(refuse("--width", "an even number", 7), "--width: wanted an even number, got 7");
}

TEST_CASE("what is printed has the width that it takes") {
  CHECK(display_width("é€🙂") == 3);
  CHECK(with_commas(131072000) == "131,072,000");
  CHECK(with_commas(12) == "12");
  CHECK(display_width(bar(0.3, 10)) == 10);
  CHECK(bar(1, 3) == "███");
  CHECK(visible("a b\n\x01") == "a␣b⏎<01>");
  CHECK(visible("\u009b2J \u00a0\xc2") == "<9b>2J␣\u00a0<c2>");
  CHECK(visible("\x80é\xe2\x82") == "<80>é<e2><82>");
  CHECK(printable_lines("a\n\tb\r\033[2J\u009bé\xc2") == "a\n\tb\\x0d\\x1b[2J\\xc2\\x9bé\\xc2");
  CHECK(sparkline(row(Tensor<1>{0, 1})) == "▁█");
  const Tensor<2> x = {{0, 1, 2, 4, -infinity, not_a_number}};
  CHECK(heat_map_text(x, {.row_labels = {"a"}, .col_labels = {}}) ==
        "  a   ░░▒▒██ .??\n       0  ░░ 1  ▒▒ 2  ▓▓ 3  ██ 4\n");
}

}  // namespace t2t::common_test
