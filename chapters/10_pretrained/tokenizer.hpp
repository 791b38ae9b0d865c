// The tokenizer that a GGUF file carries, under keys that begin with "tokenizer.ggml.".
#pragma once

#include "10_pretrained/bpe.hpp"
#include "10_pretrained/gguf.hpp"

namespace t2t {

/// What the file says. Throws std::runtime_error, naming the file and the key, when something is
/// missing or of the wrong kind, or the tokenizer is no byte-level BPE ("gpt2").
BpeTables read_tables(const GgufFile& file);

/// The tokenizer made of it, which needs the file no longer. Throws as Bpe does, too.
Bpe read_tokenizer(const GgufFile& file);

}  // namespace t2t
