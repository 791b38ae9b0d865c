// What Unicode's tables say of whole texts: one form for each text, and which characters are space.
//
// Many characters can be written in two ways: é as U+00E9, or as e and the accent U+0301. Unicode's
// normal form C (NFC) takes the first wherever there is one, and puts the accents that remain into
// a fixed order. Texts that look the same then have the same bytes, and so the same tokens.
// Unicode Standard Annex #15, "Unicode Normalization Forms". The tables are those of utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace t2t {

/// The text in NFC, in time n·log n. Characters that are newer than the installed utf8proc stay as
/// they are. Throws std::runtime_error, with the offset, unless text is UTF-8.
std::string to_nfc(std::string_view text);

/// The text without the spaces at its beginning and end, line ends among them: what Python's strip
/// removes. The text must be UTF-8.
std::string_view trimmed(std::string_view text);

}  // namespace t2t
