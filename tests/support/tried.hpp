// What tests of files share: a folder of their own, and calls that may throw.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <optional>
#include <string>

namespace t2t {

/// A folder that is gone when the test ends.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("t2t_test_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path), {});
  }
};

/// Does what may throw. What goes wrong becomes a failed check, and nothing.
template <class Call>
auto tried(Call call) -> std::optional<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& error) {
    CHECK_MESSAGE(false, error.what());
    return std::nullopt;
  }
}

}  // namespace t2t
