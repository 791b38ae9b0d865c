// The solutions to the problems on paper of docs/10_pretrained.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "09_language_model/accounts/accounts.hpp"
#include "10_pretrained/file/dequantize.hpp"
#include "10_pretrained/tokenizer/bpe.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Parameters llama_3_8b() {
  return count_parameters(
      {.block = llama_style(4096, 32, 8, 14336), .L = 32, .V = 128256, .T_max = 8192});
}

static Solution file_in_8_bits() {
  const Parameters count = llama_3_8b();
  const BlockLayout block = block_layout(TensorType::q8_0);
  const std::size_t matrices = total(count) - count.norms;
  const double bytes = double(matrices / block.numbers * block.bytes) + 4 * double(count.norms);
  return {"an 8-bit file",
          fmt::format("A block of 32 weights has {} bytes, with its scale: {:g} bits per weight. "
                      "The matrices take {} · {} / {} bytes and the norms hardly any: {}.",
                      block.bytes, 8.0 * double(block.bytes) / double(block.numbers),
                      with_commas(matrices), block.bytes, block.numbers, bytes_text(bytes))};
}

static Solution tokens_a_second() {
  const Parameters count = llama_3_8b();
  const double all = 2 * double(total(count)), read = all - 2 * double(count.embedding);
  return {"tokens per second",
          fmt::format("Each token reads all weights but the embedding, of which it needs one row: "
                      "{} of {}. That is at most {:.1f} tokens per second.",
                      bytes_text(read), bytes_text(all), 100e9 / read)};
}

static Solution order_of_merges() {
  BpeTables tables{"paper", "gpt-2", {"l", "o", "w", "e", "r"}, {}, {}, {}, {}};
  tables.merges = {"w e", "l o", "lo w", "e r", "we r"};
  for (std::string merge : tables.merges) tables.tokens.push_back(merge.erase(merge.find(' '), 1));
  tables.kinds.assign(tables.tokens.size(), TokenKind::normal);
  const Bpe bpe(tables);
  std::vector<std::string> names;
  for (const int id : bpe.encode("lower")) names.push_back(bpe.bytes(id));
  return {"order of merges",
          fmt::format("w e comes first and takes the w away, so that neither lo w nor e r is left: "
                      "{}. From left to right it would be low er.",
                      fmt::join(names, " "))};
}

static Solution two_tokenizers() {
  const auto bits = [](double nats, double bytes) { return nats / std::numbers::ln2 / bytes; };
  return {
      "two tokenizers",
      fmt::format("The first: 2.0 / ln 2 / 4 = {:.2f} bits per byte, the other 1.5 / ln 2 / 2.5 = "
                  "{:.2f}. Yet the first has the higher perplexity, {:.1f} compared with {:.1f}.",
                  bits(2.0, 4), bits(1.5, 2.5), std::exp(2.0), std::exp(1.5))};
}

std::vector<Solution> solutions() {
  return {file_in_8_bits(), tokens_a_second(), order_of_merges(), two_tokenizers()};
}

}  // namespace t2t
