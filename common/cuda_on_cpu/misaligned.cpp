// The compiler checks the alignment of each access in a kernel (-fsanitize=alignment) and calls
// this function when a check fails. The names and layouts are those that g++ and clang expect.
#include <cstdint>
#include <string>

#include "cuda_on_cpu/machine.hpp"

namespace {

struct TypeName {
  std::uint16_t kind, info;
  char name[1];  // the first of a text that ends with 0
};

struct Mismatch {
  const char* file;
  std::uint32_t line, column;
  const TypeName* type;
  unsigned char log_of_alignment, kind_of_access;
};

std::string describe(const Mismatch& access, std::uintptr_t address) {
  std::string type = access.type->name;  // quoted already: 'const struct float4' to g++
  if (const auto at = type.find("struct "); at != type.npos) type.erase(at, 7);
  if (address == 0) return "null pointer to " + type;
  return "an address that is no multiple of " + std::to_string(1u << access.log_of_alignment) +
         " is used as a " + type;
}

}  // namespace

extern "C" void __ubsan_handle_type_mismatch_v1(void* mismatch, void* address) {
  const auto& access = *static_cast<const Mismatch*>(mismatch);
  t2t::stand_in::end_launch(describe(access, reinterpret_cast<std::uintptr_t>(address)),
                            access.file, access.line);
}
