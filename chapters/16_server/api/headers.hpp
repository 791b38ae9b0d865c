// What the server reads of a request's headers. Media types and the names of authentication schemes
// are the same in capitals and small letters (RFC 9110).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace t2t {

/// The text with a to z in the place of A to Z.
std::string small_letters(std::string_view text);

/// Whether a Content-Type is "application/json", whatever parameters follow it after a semicolon.
bool is_json_type(std::string_view content_type);

/// The key in "Bearer KEY", as an Authorization has it; none if there is another scheme.
std::optional<std::string_view> bearer_key(std::string_view authorization);

}  // namespace t2t
