// [rows]
static void attend_block(ConstMatrix q, ConstMatrix k, ConstMatrix v, const ScoreRule& rule,
                         Matrix out, Matrix scores) {
  static_cast<void>(scores);
  const bool plain = rule.factor == 0 && rule.cap == 0;
  fill(out, plain ? attention(copy_of(q), copy_of(k), copy_of(v), rule.mask)
                  : attention(copy_of(q), copy_of(k), copy_of(v), rule));
}

// [formula]
Tensor<2> attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, Mask mask) {
  Tensor<2> out = empty(q.shape(0), q.shape(1));
  Tensor<1> scratch = empty(attend_floats(q.shape(0), k.shape(0)));
  attend(q, k, v, mask, out, row(scratch));
  return out;
}
