// A gpt-oss model from its GGUF file, whose experts are in MXFP4.
//
//   blk.3.attn_q.weight, .bias                also attn_k, attn_v and attn_output, each with a bias
//   blk.3.attn_sinks.weight                   [H]
//   blk.3.attn_norm.weight, post_attention_norm.weight    the second is the norm before the experts
//   blk.3.ffn_gate_inp.weight, .bias          the router, [E, C] and [E]
//   blk.3.ffn_gate_exps.weight, .bias         also ffn_up_exps and ffn_down_exps: [E, F, C], [E, F]
//
// A file does not say which layers see a window unless it has attention.sliding_window_pattern:
// programs know that it is the first of every two. Nor does it say that YaRN's ends are not
// rounded. Chapter 10 reads the other architectures.
#pragma once

#include "10_pretrained/file/gguf.hpp"
#include "25_sinks/gpt_oss/gpt_oss.hpp"

namespace t2t {

/// Whether general.architecture is gpt-oss.
bool is_gpt_oss(const GgufFile& file);

/// The sizes and choices in the metadata. Throws std::runtime_error, naming the file and the key,
/// for another architecture, for a value that is missing, out of range or not built here.
Config read_gpt_oss_config(const GgufFile& file);

/// How experts in MXFP4 are multiplied: as floats, exactly, from 4.25 bits per weight; or as
/// integers, by chapter 12's product, which rounds activations to 8 bits and keeps weights in Q8_0,
/// in twice the memory. No weight is rounded.
enum class ExpertProducts { floats, integers };

/// The whole model. Weights of F16 and BF16 stay as they are stored, others but MXFP4 become
/// floats. Throws as read_gpt_oss_config does, and std::runtime_error, naming the file, for tensors
/// that are missing, surplus or of another shape, for a scale of MXFP4 that is NaN, and, for
/// integers, as mxfp4_as_q8_0 does.
GptOss read_gpt_oss(const GgufFile& file, ExpertProducts products = ExpertProducts::floats);

}  // namespace t2t
