// Where the real model's file is.
#pragma once

#include <string>

namespace t2t {

/// T2T_WEIGHTS from the environment, or else where ./learn weights puts the file, which
/// CMakeLists.txt defines.
std::string default_model();

}  // namespace t2t
