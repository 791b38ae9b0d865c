// Reads the weights of DeepSeek-V2 and V3 from a GGUF file.
//
// Newer files store w_kvb in two tensors, head by head, so that a program in the absorbed form
// needs no other: attn_k_b, [H, K, N], each head's U transposed, and attn_v_b, [H, Dv, K], each
// head's Y. Here they become one matrix again, whose rows are head 0's U, head 0's Y, head 1's U …
// Older files store it as attn_kv_b, and some files have all three.
//
// The matrices of attention become floats. Those of the networks, the embedding and the head become
// what `make` makes of them: chapter 12's packed_matrix keeps them in the file's few bits, which
// V2-Lite needs on a machine with 24 GB, since 15.7 billion floats are 63 GB.
#pragma once

#include "10_pretrained/model/load_model.hpp"
#include "23_latent/model/latent_model.hpp"
#include "23_latent/model/read_config.hpp"

namespace t2t {

/// Throws std::runtime_error, naming the file and the tensor, when one is missing or has another
/// shape, then with both shapes, and for a tensor that the config has no use for.
void expect_latent_tensors(const GgufFile& file, const LatentConfig& config);

/// U and Y of all heads, [H·(N+Dv), K], from either form. `block` is "blk.3.". Throws as
/// GgufFile::tensor does.
Tensor<2> read_kv_b(const GgufFile& file, const std::string& block, const LatentSettings& settings);

/// Config and weights. Matrices become floats unless `make` is given. Throws as read_latent_config
/// and expect_latent_tensors do, and before it takes more memory than is free.
LatentModel read_latent_model(const GgufFile& file, const MakeWeight& make = {});

}  // namespace t2t
