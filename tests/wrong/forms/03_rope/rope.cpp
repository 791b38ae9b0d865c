// [rows]
void rope_rows(Matrix x, std::size_t D, const RopeTable& table, std::size_t start,
               Pairing pairing) {
  fill(x, rope(copy_of(x), D, table, start, pairing));
}

// [formula]
Tensor<2> rope(const Tensor<2>& x, std::size_t D, const RopeTable& table, std::size_t start,
               Pairing pairing) {
  Tensor<2> y = x;
  rope_rows(y, D, table, start, pairing);
  return y;
}
