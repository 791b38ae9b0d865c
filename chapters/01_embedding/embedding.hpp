// Embedding: each token id selects one row of a table, and that row is the token's vector.
//
//   x[t,c] = table[ids[t], c]            and back:  logits[t,v] = Σ over c of x[t,c] · table[v,c]
//
// Looking up a row returns the same vector as the product of a one-hot row and the table. When the
// logits use the same table, the two are "tied" (Press and Wolf 2017, "Using the Output Embedding
// to Improve Language Models"). The vector does not depend on the token's position, which chapter
// 03 adds. Chapter 09's model begins with this look-up and may end with the same table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// The simplest tokenizer: each byte of the UTF-8 text is a token, and its id is the byte's value,
/// so V = 256. (Chapter 10 builds a better one.)
std::vector<int> byte_ids(std::string_view text);  // [T]

/// A new table, filled as GPT-2 does: normal random numbers with mean 0 and standard deviation
/// 0.02. Chapter 13 trains one.
Tensor<2> embedding_table(std::size_t V, std::size_t C, Random& random);  // [V, C]

/// Throws std::invalid_argument when an id is outside [0, V), with the token's position from 0, its
/// id and V: "ids: token 1 is 3, outside [0, 3), the vocabulary".
void expect_ids(std::span<const int> ids,  // [T]
                std::size_t V);

/// Row t is all zeros but for a 1 in column ids[t]: [T, V]. Throws as expect_ids does.
Tensor<2> one_hot(std::span<const int> ids,  // [T]
                  std::size_t V);

/// The formula: x = one_hot · table, [T, C]. Its cost is a product with all V rows for each token.
/// Throws as expect_ids does.
Tensor<2> embed(std::span<const int> ids,  // [T]
                const Tensor<2>& table);   // [V, C]

/// The same by look-up: copies one row for each token; no ids give no rows. x must not overlap the
/// table, which is not checked. Throws as expect_ids does, then std::invalid_argument when x is not
/// [T, C]; x is unchanged then.
void embed_rows(std::span<const int> ids,  // [T]
                ConstMatrix table,         // [V, C]
                Matrix x);                 // [T, C]

/// The logits: the dot product of each token's vector with each row of the table, [T, V]. With
/// embed's table, the two are tied. Throws std::invalid_argument, with the table's shape and the
/// wanted one, [V, C of x], unless x and the table have the same C.
Tensor<2> unembed(const Tensor<2>& x,       // [T, C]
                  const Tensor<2>& table);  // [V, C]

}  // namespace t2t
