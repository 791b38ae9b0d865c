#include "13_training/backward/embedding_backward.hpp"

#include "01_embedding/embedding.hpp"
#include "13_training/backward/column_sums.hpp"
#include "shapes.hpp"

namespace t2t {

/// dtable[row_of(t)] += dx[t] for each t, a stretch of columns at a time.
template <class RowOf>
static void add_rows_at(ConstMatrix dx, Matrix dtable, RowOf row_of) {
  const Row columns(dtable.data, dtable.cols);
  add_column_sums(dx.rows, columns, [&](std::size_t t, std::size_t from, Row stretch) {
    const ConstRow dx_t = dx.row(t).subspan(from, stretch.size());
    const Row to = dtable.row(row_of(t)).subspan(from, stretch.size());
#pragma omp simd
    for (std::size_t c = 0; c < to.size(); ++c) to[c] += dx_t[c];
  });
}

void add_embedding_gradient(std::span<const int> ids, ConstMatrix dx, Matrix dtable) {
  expect_ids(ids, dtable.rows);
  expect_shape("dx", dx, {ids.size(), dtable.cols});
  add_rows_at(dx, dtable, [&](std::size_t t) { return std::size_t(ids[t]); });
}

void add_positions_gradient(std::size_t T, ConstMatrix dx, Matrix dtable) {
  expect(T >= 1 && dx.rows % T == 0, "T, the tokens of a sequence", "a divisor of the rows", T);
  expect(T <= dtable.rows, "T, the tokens of a sequence", "at most T_max, the rows of the table",
         T);
  expect_shape("dx", dx, {dx.rows, dtable.cols});
  add_rows_at(dx, dtable, [&](std::size_t t) { return t % T; });
}

}  // namespace t2t
