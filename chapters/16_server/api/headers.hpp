// Reading a request's headers. The case of letters does not matter in media types and in names of
// authentication schemes (RFC 9110).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace t2t {

/// The text with A to Z replaced by a to z.
std::string lower_case(std::string_view text);

/// Whether a Content-Type is "application/json", whatever parameters follow it after a semicolon.
bool is_json_type(std::string_view content_type);

/// The key in an Authorization "Bearer KEY"; none for another scheme.
std::optional<std::string_view> bearer_key(std::string_view authorization);

}  // namespace t2t
