#include "12_quantization/packed/packed_product.hpp"

#include <cstring>

#include "12_quantization/packed/registers.hpp"
#include "fetch_ahead.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// One block of 16 rows in registers, ready to be multiplied with any number of tokens.
template <class V, PackedForm form>
struct Unpacked {
  typename V::Floats scales[form.scale_for_16 ? 2 : 1];  // of 16 numbers of a row, or of all
  typename V::Floats minima;
  typename V::Bytes q[8];  // q[j]: numbers 4·j … 4·j + 3 of each row

  Unpacked(const std::uint8_t* head, const std::uint8_t* block) {
    const typename V::Floats of_rows = V::halves(head);
    scales[0] = of_rows;
    if constexpr (form.has_minimum) minima = V::halves(head + 2 * rows_of_group);
    if constexpr (form.two_levels) {
      const typename V::Floats first = V::integers(block);
      const typename V::Floats second = V::integers(block + rows_of_group);
      if constexpr (form.scale_for_16) {
        scales[0] = V::multiply(of_rows, V::add(first, -128));
        scales[1] = V::multiply(of_rows, V::add(second, -128));
      } else {
        scales[0] = V::multiply(of_rows, first), minima = V::multiply(minima, second);
      }
    }
    read_q(block + form.level_bytes());
  }

 private:
  void read_q(const std::uint8_t* at) {
    constexpr std::size_t upper = form.bits % 4;  // bits of a q beyond the first 4 or 8
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j) {
      if constexpr (form.bits == 8)
        q[j] = V::load(at + 64 * j);
      else
        q[j] = V::bits(V::load(at + 64 * (j % 4)), j / 4 * 4, 4);
      if constexpr (upper > 0) {
        const typename V::Bytes above = V::load(at + 256 + upper * j / 8 * 64);
        q[j] = V::with_above(q[j], V::bits(above, upper * j % 8, upper));
      }
    }
  }
};

/// Adds a block of 32 weights to the sums of one token for 16 rows. `block` is its index in x. Each
/// half of x's 32 channels has its own scale and sum.
template <class V, PackedForm form>
[[gnu::always_inline]] static inline void add_block(typename V::Floats& sums,
                                                    const Unpacked<V, form>& w,
                                                    const EightBitRows& x, std::size_t block) {
  const std::int8_t* p = &x.q[block_numbers * block];
  const float* scales = &x.scales[2 * block];
  const std::int32_t* sums_p = &x.sums[2 * block];
  typename V::Integers first = V::all(-form.offset * sums_p[0]);
  typename V::Integers second = V::all(-form.offset * sums_p[1]);
  V::template add_products<form.bits>(first, w.q, p);
  V::template add_products<form.bits>(second, w.q + 4, p + 16);
  const typename V::Floats of_first = V::multiply(V::to_floats(first), V::all(scales[0]));
  if constexpr (form.scale_for_16) {
    const auto of_second = V::multiply(V::to_floats(second), V::all(scales[1]));
    sums = V::multiply_add(w.scales[0], of_first, sums);
    sums = V::multiply_add(w.scales[1], of_second, sums);
  } else {
    const auto of_both = V::multiply_add(V::to_floats(second), V::all(scales[1]), of_first);
    sums = V::multiply_add(w.scales[0], of_both, sums);
  }
  if constexpr (form.has_minimum)
    sums = V::multiply_add(w.minima, V::all(x.scaled_sums[block]), sums);
}

/// Writes one token's 16 sums, or as many as there are rows left.
template <class V>
static void put(const typename V::Floats& sums, Row y, std::size_t first) {
  if (first + rows_of_group <= y.size()) return V::store(sums, &y[first]);
  float all[rows_of_group];
  V::store(sums, all);
  std::copy(all, all + (y.size() - first), &y[first]);
}

/// A few tokens with one group of rows: each block is unpacked once for all of them.
template <class V, PackedForm form, std::size_t tokens>
static void multiply(const EightBitRows& x, const PackedRows& w, std::size_t t, std::size_t group,
                     Matrix y) {
  typename V::Floats sums[tokens];
  for (auto& sum : sums) sum = V::all(0.0f);
  const std::size_t first_block = group * w.blocks();
  const std::size_t first_of_x = x.block(t, 0), together = x.rows_with(t);
  for (std::size_t b = 0; b < w.blocks(); ++b) {
    const std::uint8_t* head = &w.bytes[form.head(first_block + b)];
    const std::uint8_t* block = &w.bytes[form.block(first_block + b)];
    if (tokens == 1) fetch_ahead(block, form.block_bytes());
    const Unpacked<V, form> of_w(head, block);
    const std::size_t of_x = first_of_x + b * together;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < tokens; ++i) add_block<V, form>(sums[i], of_w, x, of_x + i);
  }
  for (std::size_t i = 0; i < tokens; ++i) put<V>(sums[i], y.row(t + i), group * rows_of_group);
}

template <class V, PackedForm form>
static void multiply_groups(const EightBitRows& x, const PackedRows& w, std::size_t first,
                            std::size_t last, Matrix y) {
  for (std::size_t group = first; group < last; ++group)
    for (std::size_t t = 0; t < x.T;)
      if (V::tokens > 1 && x.rows_with(t) == V::tokens)
        multiply<V, form, V::tokens>(x, w, t, group, y), t += V::tokens;
      else
        multiply<V, form, 1>(x, w, t++, group, y);
}

/// The compiler makes a loop for each form, in which bits and offset are constants.
template <class V, PackedForm form, PackedForm... others>
static void groups_product(const EightBitRows& x, const PackedRows& w, std::size_t first,
                           std::size_t last, Matrix y) {
  if (w.form == form) return multiply_groups<V, form>(x, w, first, last, y);
  if constexpr (sizeof...(others) > 0) groups_product<V, others...>(x, w, first, last, y);
}

template <class V>
static void add_if_it_works(std::vector<Instructions>& all, const char* name) {
  if (V::works_here())
    all.push_back({name, groups_product<V, form_q4_0, form_q4_1, form_q5_0, form_q5_1, form_q8_0,
                                        form_q4_k, form_q5_k, form_q6_k>});
}

const std::vector<Instructions>& instructions_here() {
  static const std::vector<Instructions> all = [] {
    std::vector<Instructions> all;
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
    add_if_it_works<Avx512Registers>(all, "AVX-512 VNNI");
#endif
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
    add_if_it_works<Avx2Registers>(all, "AVX2");
#endif
#if defined(__aarch64__)
    add_if_it_works<NeonRegisters>(all, "NEON");
#endif
    add_if_it_works<PlainRegisters>(all, "plain");
    return all;
  }();
  return all;
}

/// A task is a few groups of rows: enough work for the time that it takes to fetch one.
static constexpr std::size_t groups_of_task = 3;
static std::size_t tasks_of(const PackedRows& w) {
  return (w.groups() + groups_of_task - 1) / groups_of_task;
}

void packed_products(const EightBitRows& x, std::span<const PackedProduct> all,
                     const Instructions& instructions) {
  std::size_t tasks = 0;
  for (const auto& [w, y] : all) {
    expect(x.C == w->cols, "x's columns", std::to_string(w->cols), x.C);
    expect_shape("y", y, {x.T, w->rows});
    tasks += tasks_of(*w);
  }
  for_each_task(tasks, groups_of_task * rows_of_group * x.C, [&](std::size_t i, std::size_t) {
    const PackedProduct* at = all.data();
    for (; i >= tasks_of(*at->w); ++at) i -= tasks_of(*at->w);
    const std::size_t first = i * groups_of_task;
    instructions.product(x, *at->w, first, std::min(first + groups_of_task, at->w->groups()),
                         at->y);
  });
}

void packed_product(const EightBitRows& x, const PackedRows& w, Matrix y,
                    const Instructions& instructions) {
  packed_products(x, {{PackedProduct{&w, y}}}, instructions);
}

}  // namespace t2t
