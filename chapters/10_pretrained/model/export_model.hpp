// A model as one flat file, for whole_model.cpp, which reads it without any of this book's code.
//
//   magic      "T2TWHOLE", then the version 1 as a u32
//   sizes      C, L, H, G, D, F, V, T_max as u32, and 1 where the embedding serves as the head
//   end        the id that ends a text, or −1, as an i32; then eps as an f32
//   RoPE       D/2 frequencies as f64
//   weights    all as f32, rows first: the embedding; of each block attention_norm, w_q, w_k, w_v,
//              w_o, feed_forward_norm, w_gate, w_up, w_down; final_norm; the head unless tied
//   tokens     each one's length as a u32, then its bytes
//   prompt     the number of its ids as a u32, then the ids as i32
//
// All little-endian, without padding.
#pragma once

#include <span>
#include <string>

#include "09_language_model/fast/model.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming the difference, for a model that whole_model.cpp does not
/// compute (it has neighbours as pairs, no biases, no norms of heads and no window), for an empty
/// prompt, and unless bpe has V tokens; std::runtime_error when the memory is not free.
std::string exported(const Model& model, const Bpe& bpe, std::span<const int> prompt);

}  // namespace t2t
