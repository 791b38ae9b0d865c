// Lists in tests, token ids among them, and how a failed comparison shows them.
#pragma once

#include <doctest/doctest.h>

#include <vector>

namespace t2t {
using Ids = std::vector<int>;
}

template <class T>
struct doctest::StringMaker<std::vector<T>> {
  static doctest::String convert(const std::vector<T>& list) {
    doctest::String text = "{";
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text += ", ";
      text += doctest::toString(list[i]);
    }
    return text + "}";
  }
};
