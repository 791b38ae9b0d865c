#include "01_embedding/embedding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

std::vector<int> byte_ids(std::string_view text) {
  std::vector<int> ids;  // [T]
  // A char may be signed, as on x86: without the cast, bytes from 128 on would be negative ids.
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

Tensor<2> embedding_table(std::size_t V, std::size_t C, Random& random) {
  return random.normal<2>({V, C}, 0.02f);
}

void expect_ids(std::span<const int> ids, std::size_t V) {
  for (std::size_t t = 0; t < ids.size(); ++t)
    if (ids[t] < 0 || std::size_t(ids[t]) >= V)
      throw std::invalid_argument(
          fmt::format("ids: token {} is {}, outside [0, {}), the vocabulary", t, ids[t], V));
}

Tensor<2> one_hot(std::span<const int> ids, std::size_t V) {
  expect_ids(ids, V);
  Tensor<2> rows = xt::zeros<float>({ids.size(), V});  // [T, V]
  for (std::size_t t = 0; t < ids.size(); ++t) rows(t, std::size_t(ids[t])) = 1;
  return rows;
}

Tensor<2> embed(std::span<const int> ids, const Tensor<2>& table) {
  return matmul(one_hot(ids, table.shape(0)), table);  // [T, C]
}

void embed_rows(std::span<const int> ids, ConstMatrix table, Matrix x) {
  expect_ids(ids, table.rows);
  expect_shape("x", x, {ids.size(), table.cols});
  for_each_row(ids.size(), table.cols, [&](std::size_t t) {
    std::ranges::copy(table.row(std::size_t(ids[t])), x.row(t).begin());
  });
}

Tensor<2> unembed(const Tensor<2>& x, const Tensor<2>& table) {
  expect_shape("table", table, {table.shape(0), x.shape(1)});
  return matmul_bt(x, table);  // [T, V]
}

}  // namespace t2t
