// Embedding: each token id picks one row of a table, the vector by which the model knows that
// token.
//
//   x[t,c] = table[ids[t], c]            and back:  logits[t,v] = Σ over c of x[t,c] · table[v,c]
//
// Looking up a row is the same as multiplying a one-hot row with the table, without the zeros. The
// way back through the same table is "tied" (Press and Wolf 2017, "Using the Output Embedding to
// Improve Language Models"). Where a token stands, the vector does not say: chapter 03.
// Chapter 09's model begins with this look-up, and may end with the same table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// The simplest tokenizer: a token a byte of UTF-8, V = 256. (Chapter 10 has a better one.)
std::vector<int> byte_ids(std::string_view text);  // [T]

/// A table as GPT-2 begins it: numbers from N(0, 0.02²). Chapter 13 trains one.
Tensor<2> embedding_table(std::size_t V, std::size_t C, Random& random);  // [V, C]

/// Throws std::invalid_argument, naming the token, the id and V, when an id is outside [0, V).
void expect_ids(std::span<const int> ids,  // [T]
                std::size_t V);

/// Row t holds a single 1, at column ids[t]: [T, V]. Throws as expect_ids does.
Tensor<2> one_hot(std::span<const int> ids,  // [T]
                  std::size_t V);

/// The formula: x = one_hot · table, [T, C], at the cost of reading V rows a token. Throws as
/// one_hot does.
Tensor<2> embed(std::span<const int> ids,  // [T]
                const Tensor<2>& table);   // [V, C]

/// The same by look-up: one row a token. x must not overlap the table. Throws as
/// embed does, and when x is not [T, C]; x is untouched then.
void embed_rows(std::span<const int> ids,  // [T]
                ConstMatrix table,         // [V, C]
                Matrix x);                 // [T, C]

/// Tied unembedding: how well each token's vector agrees with every row of the table, [T, V].
/// Throws std::invalid_argument, naming both shapes, unless the widths are equal.
Tensor<2> unembed(const Tensor<2>& x,       // [T, C]
                  const Tensor<2>& table);  // [V, C]

}  // namespace t2t
