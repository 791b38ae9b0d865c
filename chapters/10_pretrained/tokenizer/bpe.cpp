#include "10_pretrained/tokenizer/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "10_pretrained/tokenizer/byte_alphabet.hpp"
#include "10_pretrained/tokenizer/unicode.hpp"
#include "files/files.hpp"

namespace t2t {

TokenFinder::TokenFinder(std::map<std::string, int> ids) {
  for (const auto& [text, id] : ids) {
    // In sorted order a token's prefixes come before it, and all tokens between share that prefix.
    int shorter = int(tokens_.size()) - 1;
    while (shorter >= 0 && !text.starts_with(tokens_[shorter].text))
      shorter = tokens_[shorter].shorter;
    tokens_.push_back({text, id, shorter});
  }
}

std::optional<TokenFinder::Found> TokenFinder::find(std::string_view text) const {
  // Of the tokens that sort no later than text, the last one begins with every token that text
  // begins with. So the token sought is that one or one of its prefixes.
  text = text.substr(0, most_bytes);
  const auto after = std::ranges::upper_bound(
      tokens_, text, {}, [](const Token& t) { return std::string_view(t.text); });
  if (after == tokens_.begin()) return std::nullopt;
  const std::string& last = std::prev(after)->text;
  const std::size_t shared = std::ranges::mismatch(last, text).in1 - last.begin();
  for (int at = int(after - tokens_.begin()) - 1; at >= 0; at = tokens_[at].shorter)
    if (tokens_[at].text.size() <= shared) return Found{tokens_[at].id, tokens_[at].text.size()};
  return std::nullopt;
}

void Bpe::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}", tables_.name, what));
}

static void check_id(const BpeTables& tables, std::string_view name, std::optional<int> id) {
  if (id && (*id < 0 || std::size_t(*id) >= tables.tokens.size()))
    throw std::runtime_error(fmt::format("{}: {} is token {}, outside a vocabulary of {}",
                                         tables.name, name, *id, tables.tokens.size()));
}

/// Puts the file's name before the error.
static PreTokenizer make_pre_tokenizer(const BpeTables& tables) {
  try {
    return PreTokenizer(tables.pre_tokenizer);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", tables.name, error.what()));
  }
}

Bpe::Bpe(BpeTables tables) : tables_(std::move(tables)), words_(make_pre_tokenizer(tables_)) {
  const std::size_t V = tables_.tokens.size();
  if (V == 0 || V > std::numeric_limits<int>::max()) fail(fmt::format("{} tokens", V));
  if (tables_.kinds.size() != V)
    fail(fmt::format("{} tokens with {} types", V, tables_.kinds.size()));
  check_id(tables_, "bos", tables_.bos);
  check_id(tables_, "eos", tables_.eos);
  check_id(tables_, "eot", tables_.eot);
  check_id(tables_, "eom", tables_.eom);
  read_tokens();
  read_merges();
  find_ends();
}

void Bpe::find_ends() {
  for (const std::optional<int> id : {tables_.eos, tables_.eot, tables_.eom})
    if (id) ends_.push_back(*id);
  for (const std::string_view name :
       {"<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"})
    if (const std::optional<int> found = id(name); found && kind(*found) == TokenKind::control)
      ends_.push_back(*found);
  std::ranges::sort(ends_);
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
}

void Bpe::read_tokens() {
  byte_ids_.fill(-1);
  std::map<std::string, int> added, added_and_control;
  for (std::size_t i = 0; i < tables_.tokens.size(); ++i) {
    const std::string& token = tables_.tokens[i];
    const auto fail_token = [&](std::string_view what) {
      fail(fmt::format("token {} \"{}\" {}", i, printable(token), what));
    };
    if (!ids_.emplace(token, int(i)).second) fail_token("occurs twice");

    // Control and added tokens are written as they are, all others in the byte alphabet.
    switch (tables_.kinds[i]) {
      case TokenKind::normal:
        if (const std::optional<std::string> bytes = from_byte_alphabet(token)) {
          bytes_.push_back(*bytes);
          if (bytes->size() == 1) byte_ids_[std::uint8_t((*bytes)[0])] = int(i);
        } else {
          fail_token("contains a character that stands for no byte");
        }
        break;
      case TokenKind::unknown:
      case TokenKind::control:
      case TokenKind::added:
        if (token.empty() || !is_utf8(token)) fail_token("is empty or not UTF-8");
        if (token.size() > TokenFinder::most_bytes)
          fail_token(fmt::format("has {} bytes, wanted at most {}", token.size(),
                                 TokenFinder::most_bytes));
        bytes_.push_back(token);
        added_and_control.emplace(token, int(i));
        if (tables_.kinds[i] == TokenKind::added) added.emplace(token, int(i));
        break;
      case TokenKind::unused:
        bytes_.push_back(token);
        break;
      default:
        fail_token(fmt::format("is of type {}, wanted 1 to 5", int(tables_.kinds[i])));
    }
  }
  added_ = TokenFinder(std::move(added));
  added_and_control_ = TokenFinder(std::move(added_and_control));

  if (!words_.whole_words()) return;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (tables_.kinds[i] == TokenKind::normal) by_bytes_.push_back(int(i));
  std::ranges::sort(by_bytes_, {}, [&](int id) -> std::string_view { return bytes_[id]; });
}

void Bpe::read_merges() {
  for (std::size_t rank = 0; rank < tables_.merges.size(); ++rank) {
    const std::string& merge = tables_.merges[rank];
    const auto fail_merge = [&](std::string_view what) {
      fail(fmt::format("merge {} \"{}\" {}", rank, printable(merge), what));
    };
    const std::size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
      fail_merge("is not two tokens with a space between");

    const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    const auto known = [&](const std::string& token) {
      const auto found = ids_.find(token);
      if (found == ids_.end() || tables_.kinds[found->second] != TokenKind::normal || token.empty())
        fail_merge(fmt::format("needs \"{}\", no normal token", printable(token)));
      return found->second;
    };
    const int left_id = known(left), right_id = known(right);
    if (!merges_.add(left_id, right_id, {std::uint32_t(rank), known(left + right)}))
      fail_merge("occurs twice");
  }
}

/// The token that equals this word, for models that take such words without merging.
std::optional<int> Bpe::whole_word(std::string_view word) const {
  const auto bytes = [&](int id) -> std::string_view { return bytes_[id]; };
  const auto found = std::ranges::lower_bound(by_bytes_, word, {}, bytes);
  if (found == by_bytes_.end() || bytes(*found) != word) return std::nullopt;
  return *found;
}

std::size_t Bpe::append_plain(std::string_view text, PairMerger& merger,
                              std::vector<int>& ids) const {
  std::string normal;
  if (words_.in_nfc()) text = normal = to_nfc(text);
  std::vector<int> symbols;
  std::size_t left_out = 0;
  words_.for_each_word(text, [&](std::string_view word) {
    PairMerger::check_size(word.size());
    if (const std::optional<int> whole = whole_word(word)) {
      ids.push_back(*whole);
      return;
    }
    symbols.clear();
    for (const char byte : word)
      if (byte_ids_[std::uint8_t(byte)] >= 0) symbols.push_back(byte_ids_[std::uint8_t(byte)]);
    left_out += word.size() - symbols.size();
    merger.run(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  });
  return left_out;
}

std::optional<int> Bpe::first() const {
  return tables_.bos_first.value_or(words_.bos_first()) ? tables_.bos : std::nullopt;
}

std::vector<int> Bpe::encode(std::string_view text, SpecialTokens special,
                             std::size_t* left_out) const {
  expect_utf8("text", text);
  const TokenFinder& finder = special == SpecialTokens::as_tokens ? added_and_control_ : added_;
  PairMerger merger(merges_);
  std::vector<int> ids;

  std::size_t begin = 0;  // of the plain text not yet encoded
  std::size_t without_token = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<TokenFinder::Found> found = finder.find(text.substr(at));
    if (!found) {
      ++at;
      continue;
    }
    without_token += append_plain(text.substr(begin, at - begin), merger, ids);
    ids.push_back(found->id);
    begin = at += found->length;
  }
  without_token += append_plain(text.substr(begin), merger, ids);
  if (left_out) *left_out = without_token;
  return ids;
}

const std::string& Bpe::bytes(int id) const {
  if (id < 0 || std::size_t(id) >= bytes_.size())
    throw std::invalid_argument(fmt::format("id {}: the vocabulary has {} tokens", id, size()));
  return bytes_[id];
}

TokenKind Bpe::kind(int id) const {
  bytes(id);  // is it there?
  return tables_.kinds[id];
}

std::string Bpe::decode(std::span<const int> ids) const {
  std::string text;
  for (const int id : ids) text += bytes(id);
  return text;
}

std::string Bpe::said(std::span<const int> ids) const {
  std::string text;
  for (const int id : ids)
    if (kind(id) != TokenKind::control) text += bytes(id);
  return text;
}

std::optional<int> Bpe::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace t2t
