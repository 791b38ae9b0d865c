// What must be true of tokens, of the look-up (formula and row kernel) and of the logits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "01_embedding/byte_text.hpp"
#include "01_embedding/embedding.hpp"
#include "01_embedding/neighbours.hpp"
#include "files/npy.hpp"
#include "support/all_close.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

using namespace t2t;
using namespace std::string_view_literals;
static Tensor<2> by_rows(const Ids& ids, const Tensor<2>& table) {
  Tensor<2> x = empty(ids.size(), table.shape(1));
  embed_rows(ids, table, x);
  return x;
}

/// Ids that are not in order: 0, 7, 14 … modulo V.
static Ids some_ids(std::size_t T, std::size_t V) {
  Ids ids;
  for (std::size_t t = 0; t < T; ++t) ids.push_back(int(7 * t % V));
  return ids;
}

/// V = 4 tokens, C = 3 numbers each.
static Tensor<2> small_table() { return {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {-1, 0, 1}}; }

TEST_CASE("bytes: by hand, characters of one, two and four bytes") {
  CHECK(byte_ids("Az") == Ids{65, 122});
  CHECK(byte_ids("é") == Ids{195, 169});            // U+00E9: 110 00011, 10 101001
  CHECK(byte_ids("😀") == Ids{240, 159, 152, 128});  // U+1F600
  CHECK(byte_ids("").empty());
}

TEST_CASE("bytes: the ids equal those of Python's encode, for a zero byte too") {
  CHECK(byte_ids("A é € 😀\n\0"sv) == load_npy_ints(T2T_FIXTURES "/text_ids.npy"));
}

TEST_CASE("look-up: by hand, ids (3, 0, 3) select the last row, the first and the last again") {
  const Tensor<2> want = {{-1, 0, 1}, {1, 2, 3}, {-1, 0, 1}};
  CHECK(all_close(embed(Ids{3, 0, 3}, small_table()), want, 0));
  CHECK(all_close(by_rows({3, 0, 3}, small_table()), want, 0));
}

TEST_CASE("one_hot: by hand, the 1 stands at the id") {
  const Tensor<2> want = {{0, 0, 1, 0}, {1, 0, 0, 0}, {0, 0, 1, 0}};
  CHECK(all_close(one_hot(Ids{2, 0, 2}, 4), want, 0));
}

TEST_CASE("tied logits: by hand, a row of ones sums each row of the table") {
  const Tensor<2> x = {{1, 1, 1}, {1, 0, -1}};
  const Tensor<2> want = {{6, 15, 24, 0}, {-2, -2, -2, -2}};
  CHECK(all_close(unembed(x, small_table()), want, 0));
}

TEST_CASE("tied logits: by hand, a table with as many rows as columns is still transposed") {
  const Tensor<2> x = {{1, 0}}, table = {{1, 2}, {3, 4}};
  const Tensor<2> want = {{1, 3}};
  CHECK(all_close(unembed(x, table), want, 0));
}

// Exactly: all products but one are zero, and adding zeros rounds nothing.
TEST_CASE("the look-up equals one-hot times table, at odd sizes and on several threads") {
  Random random(1);
  for (const auto& [T, V, C] :
       {std::array<std::size_t, 3>{1, 1, 1}, {2, 3, 1}, {5, 7, 31}, {13, 53, 77}, {200, 256, 97}}) {
    const Tensor<2> table = random.normal<2>({V, C});
    CAPTURE(table.shape(0));
    CHECK(all_close(by_rows(some_ids(T, V), table), embed(some_ids(T, V), table), 0));
  }
}

TEST_CASE("the look-up selects the rows that PyTorch selects") {
  const Tensor<2> table = load_npy<2>(T2T_FIXTURES "/table.npy");  // [53, 77]
  const Ids ids = load_npy_ints(T2T_FIXTURES "/ids.npy");          // [37]
  const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/x.npy");       // [37, 77]
  CHECK(all_close(by_rows(ids, table), want, 0));
  CHECK(all_close(embed(ids, table), want, 0));
}

// Both factors are N(0, 1), so that the sums have deviation sqrt(C), and the largest of T·V of them
// is about 4·sqrt(C). Each of C additions rounds a partial sum of that size by up to its 2^-24, and
// errors of either sign grow with the root of their number: 4 · sqrt(C) · sqrt(C) · 2^-24. The
// bound is three times that.
TEST_CASE("tied logits equal PyTorch's in float64") {
  const Tensor<2> table = load_npy<2>(T2T_FIXTURES "/table.npy");    // [53, 77]
  const Tensor<2> hidden = load_npy<2>(T2T_FIXTURES "/hidden.npy");  // [37, 77]
  const Tensor<2> want = load_npy<2>(T2T_FIXTURES "/logits.npy");    // [37, 53]
  CHECK(all_close(unembed(hidden, table), want, 3 * 4 * 77 * 0x1p-24));
}

TEST_CASE("a token's vector is the same at each position") {
  Random random(1);
  const Tensor<2> table = embedding_table(256, 24, random);
  const Tensor<2> forward = by_rows(byte_ids("dog bites man"), table);
  const Tensor<2> swapped = by_rows(byte_ids("man bites dog"), table);
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK(std::ranges::equal(row(forward, t), row(swapped, 10 + t)));
    CHECK(std::ranges::equal(row(forward, 10 + t), row(swapped, t)));
  }
}

TEST_CASE("the look-up reads and writes views in place, and reads only the rows of its ids") {
  Tensor<2> storage = xt::zeros<float>({4, 8});
  ConstMatrix middle = ConstMatrix(storage).cols_from(2, 3);  // [4, 3] inside rows of 8
  storage(1, 2) = 5, storage(1, 4) = 6;
  storage(0, 3) = NAN;  // one-hot times table would read it: 0 · NaN is NaN
  Tensor<2> wide = xt::ones<float>({2, 5});
  embed_rows(Ids{1, 3}, middle, Matrix(wide).cols_from(1, 3));
  const Tensor<2> want = {{1, 5, 0, 6, 1}, {1, 0, 0, 0, 1}};
  CHECK(all_close(wide, want, 0));
}

TEST_CASE("no tokens give no rows") {
  CHECK(by_rows({}, small_table()).shape(0) == 0);
  CHECK(unembed(by_rows({}, small_table()), small_table()).shape(0) == 0);
}

// Standard errors for n numbers from N(0, s²): s/sqrt(n) of the mean, s/sqrt(2n) of the deviation,
// sqrt(p(1 - p)/n) of a share p. Four of them are allowed.
TEST_CASE(
    "a new table is N(0, 0.02²): its mean, its deviation, its shares within 1 and 2 deviations") {
  Random random(1);
  const Tensor<2> table = embedding_table(251, 509, random);
  const double n = double(table.size());
  double sum = 0, squares = 0, within_one = 0, beyond_two = 0;
  for (const float value : table) {
    sum += value, squares += double(value) * value;
    within_one += std::abs(value)<0.02, beyond_two += std::abs(value)> 0.04;
  }
  CHECK(table.shape(0) == 251);
  CHECK(table.shape(1) == 509);
  CHECK(std::abs(sum / n) < 4 * 0.02 / std::sqrt(n));
  CHECK(std::abs(std::sqrt(squares / n) - 0.02) < 4 * 0.02 / std::sqrt(2 * n));
  CHECK(std::abs(within_one / n - 0.6827) < 4 * std::sqrt(0.6827 * 0.3173 / n));
  CHECK(std::abs(beyond_two / n - 0.0455) < 4 * std::sqrt(0.0455 * 0.9545 / n));
}

TEST_CASE("one seed gives one table, another seed another") {
  Random first(1), again(1), other(2);
  const Tensor<2> table = embedding_table(5, 3, first);
  CHECK(table == embedding_table(5, 3, again));
  CHECK(table != embedding_table(5, 3, other));
}

// A token's own logit is the square of its row's length, C·s² on average; another's is about
// sqrt(C)·s². At C = 256 that is 16 deviations apart.
TEST_CASE("in a new table each token has its largest logit for itself") {
  Random random(1);
  const Tensor<2> table = embedding_table(256, 256, random);
  const Tensor<2> logits = unembed(table, table);
  std::size_t own = 0;
  for (std::size_t v = 0; v < 256; ++v)
    own += std::ranges::max_element(row(logits, v)) - row(logits, v).begin() == std::ptrdiff_t(v);
  CHECK(own == 256);
}

TEST_CASE(
    "neighbours: by hand, the same direction is 1, (3, 4) to (4, 3) is 24/25, opposite is -1") {
  const Tensor<2> table = {{3, 4}, {-6, -8}, {4, 3}, {0, 0}, {30, 40}};
  const std::vector<Neighbour> found = neighbours(table, 0);
  const int order[] = {4, 2, 3, 1};
  const double cosines[] = {1, 0.96, 0, -1};
  CHECK(found.size() == 4);
  for (std::size_t place = 0; place < found.size(); ++place) {
    CHECK(found[place].id == order[place]);
    CHECK(std::abs(found[place].cosine - cosines[place]) < 1e-15);
  }
}

// 255 cosines to one row, each of deviation 1/sqrt(C): the deviation that is found from them has a
// relative standard error of 1/sqrt(2 · 255).
TEST_CASE("in a new table cosines have mean 0 and deviation 1/sqrt(C)") {
  Random random(1);
  const std::vector<Neighbour> found = neighbours(embedding_table(256, 400, random), 7);
  double sum = 0, squares = 0;
  for (const Neighbour& other : found) sum += other.cosine, squares += other.cosine * other.cosine;
  CHECK(std::abs(sum / 255) < 4 / std::sqrt(400.0 * 255));
  CHECK(std::abs(std::sqrt(squares / 255) * 20 - 1) < 4 / std::sqrt(2.0 * 255));
}

// The table is rows 1 to 3 of a larger storage, so that a version without the check reads a wrong
// row and fails here instead of crashing.
TEST_CASE("an id outside [0, V) is refused; the message has the token, the id and V") {
  const Tensor<2> storage = xt::ones<float>({5, 2});
  const ConstMatrix table = ConstMatrix(storage).rows_from(1, 3);
  Tensor<2> x = xt::zeros<float>({2, 2});
  REFUSES(embed_rows(Ids{2, 3}, table, x), "ids: token 1 is 3, outside [0, 3), the vocabulary");
  REFUSES(embed_rows(Ids{2, -1}, table, x), "ids: token 1 is -1, outside [0, 3), the vocabulary");
  CHECK(xt::all(xt::equal(x, 0)));  // refused before any row is written

  REFUSES(one_hot(Ids{3, 0}, 3), "ids: token 0 is 3, outside [0, 3), the vocabulary");
  REFUSES(embed(Ids{5, 0}, storage), "ids: token 0 is 5, outside [0, 5), the vocabulary");
}

TEST_CASE("typed ids are integers between commas; another word is refused by name") {
  CHECK(ids_by_hand("1,-2,300") == Ids{1, -2, 300});
  for (const char* word : {"x", "1.5", "", "7 ", "99999999999"}) {
    CAPTURE(word);
    const std::string message =
        "--ids: wanted integers as in \"1,2,3\", got \"" + std::string(word) + "\"";
    REFUSES(ids_by_hand("1," + std::string(word)), message);
  }
}

TEST_CASE("shapes that do not fit are refused; the message has both") {
  Tensor<2> x = empty(2, 4);
  REFUSES(embed_rows(Ids{0, 1}, small_table(), x), "x: wanted shape [2, 3], got [2, 4]");
  REFUSES(unembed(x, small_table()), "table: wanted shape [4, 4], got [4, 3]");
}
