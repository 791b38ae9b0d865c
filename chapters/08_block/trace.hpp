// A trace: every intermediate of a forward pass handed to a function by name, as it is made.
//
// For shape tables, for timing part by part, and for finding the first place where two
// implementations part (chapter 10). A value is a view of scratch memory: copy what should outlive
// the call. An empty trace costs one comparison a value.
#pragma once

#include <functional>
#include <string_view>

#include "tensor.hpp"

namespace t2t {

using Trace = std::function<void(std::string_view name, ConstMatrix value)>;

inline void tell(const Trace& trace, std::string_view name, ConstMatrix value) {
  if (trace) trace(name, value);
}

}  // namespace t2t
