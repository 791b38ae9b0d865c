// The tokenizer that a GGUF file carries, under keys that begin with "tokenizer.ggml.".
#pragma once

#include "10_pretrained/file/gguf.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

/// The tables in the file. Throws std::runtime_error, naming the file and the key, when one is
/// missing or has another type, for the id of a token that is not there, or when the tokenizer is
/// not a byte-level BPE ("gpt2").
BpeTables read_tables(const GgufFile& file);

/// The tokenizer made from them; it does not need the file any more. Throws as read_tables and Bpe
/// do.
Bpe read_tokenizer(const GgufFile& file);

}  // namespace t2t
