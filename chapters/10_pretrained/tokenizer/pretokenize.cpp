#include "10_pretrained/tokenizer/pretokenize.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pcre2.h>

#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "10_pretrained/tokenizer/later_patterns.hpp"
#include "10_pretrained/tokenizer/utf8.hpp"
#include "files/files.hpp"

namespace t2t {

// [kinds]
static const std::string gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct PreTokenizer::Kind {
  std::string_view name;
  std::vector<std::string> patterns;  // as the models' publishers write them
  bool whole_words = false;
  bool bos_first = false;
  bool in_nfc = false;
};

const PreTokenizer::Kind PreTokenizer::kinds[] = {
    {.name = "gpt-2", .patterns = {gpt2_words}},
    {.name = "smollm", .patterns = {R"(\p{N})", gpt2_words}},
    {.name = "llama-bpe",
     .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     .whole_words = true,
     .bos_first = true},
    {.name = "qwen2",
     .patterns = {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
     .in_nfc = true},
    {.name = "gpt-4o", .patterns = {gpt4o_words}},
    {.name = "deepseek-llm", .patterns = deepseek_llm_patterns},
    {.name = "deepseek-v3", .patterns = deepseek_v3_patterns},
};
// [/kinds]

const PreTokenizer::Kind& PreTokenizer::kind_of(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw std::runtime_error(fmt::format("pre-tokenizer \"{}\" is not known here; wanted one of {}",
                                       printable(name), fmt::join(names, ", ")));
}

bool PreTokenizer::whole_words() const { return kind_->whole_words; }
bool PreTokenizer::bos_first() const { return kind_->bos_first; }
bool PreTokenizer::in_nfc() const { return kind_->in_nfc; }

/// Replaces \s and \S by a list of characters, because PCRE2's \s contains U+180E, which Unicode
/// has not counted as a space since 2013.
static std::string spaces_spelled_out(std::string_view pattern) {
  const std::string spaces = R"(\p{Z}\x09-\x0d\x85)";
  std::string text;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const std::string_view sign = pattern.substr(at, pattern[at] == '\\' ? 2 : 1);
    if (sign == "[" || sign == "]") in_class = sign == "[";
    if (sign == "\\s" || sign == "\\S")
      text += in_class ? spaces : fmt::format("[{}{}]", sign == "\\S" ? "^" : "", spaces);
    else
      text += sign;
    at += sign.size() - 1;
  }
  return text;
}

static std::string pcre2_message(int error) {
  PCRE2_UCHAR8 message[256] = {};
  pcre2_get_error_message(error, message, sizeof message);
  return reinterpret_cast<const char*>(message);
}

struct PreTokenizer::Pattern {
  struct Range {
    std::size_t begin, end;
  };
  using Match = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

  explicit Pattern(const std::string& text) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (!code)
      throw std::runtime_error(
          fmt::format("PCRE2 at offset {} of {}: {}", at, text, pcre2_message(error)));
    // Compiles the pattern to machine code where the system allows it; else it is interpreted,
    // which is slower.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    // Many spaces without a line's end take a step back for each, which is no reason to give up.
    if (!limits) throw std::bad_alloc();
    pcre2_set_match_limit(limits.get(), std::numeric_limits<std::uint32_t>::max());
  }

  Match new_match() const {
    Match match(pcre2_match_data_create_from_pattern(code.get(), nullptr), pcre2_match_data_free);
    if (!match) throw std::bad_alloc();
    return match;
  }

  /// The first match at or after `from`. text has been checked to be UTF-8: checking it again for
  /// each word would take time quadratic in its length.
  std::optional<Range> find(std::string_view text, std::size_t from, Match& match) const {
    const int status =
        pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK, match.get(), limits.get());
    if (status == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (status < 0)
      throw std::runtime_error(
          fmt::format("PCRE2 at offset {} of a text: {}", from, pcre2_message(status)));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    return Range{range[0], range[1]};
  }

  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{
      pcre2_match_context_create(nullptr), pcre2_match_context_free};
};

PreTokenizer::PreTokenizer(std::string_view name) : kind_(&kind_of(name)) {
  for (const std::string& pattern : kind_->patterns)
    patterns_.push_back(std::make_shared<Pattern>(spaces_spelled_out(pattern)));
}

/// Cuts a part of the text by the patterns from `step` on. A pattern sees only the part: before a
/// digit that is cut off, spaces all stay together.
void PreTokenizer::cut(std::string_view part, std::size_t step, const UseWord& use) const {
  if (part.empty()) return;
  if (step == patterns_.size()) return use(part);
  Pattern::Match match = patterns_[step]->new_match();
  std::size_t begin = 0;
  while (const auto found = patterns_[step]->find(part, begin, match)) {
    if (found->end <= begin)
      throw std::runtime_error(fmt::format("PCRE2 found no word at offset {} of a text", begin));
    cut(part.substr(begin, found->begin - begin), step + 1, use);
    cut(part.substr(found->begin, found->end - found->begin), step + 1, use);
    begin = found->end;
  }
  cut(part.substr(begin), step + 1, use);
}

void PreTokenizer::for_each_word(std::string_view text, const UseWord& use) const {
  expect_utf8("text", text);
  cut(text, 0, use);
}

}  // namespace t2t
