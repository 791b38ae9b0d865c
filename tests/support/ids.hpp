// Token ids in tests, and how a failed comparison shows them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace t2t {
using Ids = std::vector<int>;
}

template <>
struct doctest::StringMaker<t2t::Ids> {
  static doctest::String convert(const t2t::Ids& ids) {
    std::string text;
    for (const int id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
    return ("{" + text + "}").c_str();
  }
};
