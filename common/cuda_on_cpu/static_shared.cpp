#include "cuda_on_cpu/static_shared.hpp"

#include <map>

#ifdef __ELF__
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#endif

namespace t2t::stand_in {
namespace {

using Variables = std::vector<std::span<std::byte>>;

#ifdef __ELF__

/// This program's file, in memory, and the symbols of its section of type SHT_SYMTAB.
class ProgramFile {
 public:
  ProgramFile() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      void* memory = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory != MAP_FAILED) begin_ = static_cast<const std::byte*>(memory);
    }
    if (file >= 0) close(file);
    if (begin_ != nullptr) find_symbols();
    // The program itself is the first in this list. dlpi_addr is how far it was moved when loaded.
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* moved) {
          *static_cast<std::uintptr_t*>(moved) = info->dlpi_addr;
          return 1;
        },
        &moved_by_);
  }

  std::span<const ElfW(Sym)> symbols() const { return symbols_; }
  std::string_view name(const ElfW(Sym) & symbol) const { return names_ + symbol.st_name; }
  std::byte* address(const ElfW(Sym) & symbol) const {
    return reinterpret_cast<std::byte*>(symbol.st_value + moved_by_);
  }
  bool is_writable(const ElfW(Sym) & symbol) const {
    return symbol.st_shndx < sections_.size() &&
           (sections_[symbol.st_shndx].sh_flags & SHF_WRITE) != 0;
  }

 private:
  template <class T>
  std::span<const T> array(std::size_t offset, std::size_t count) const {
    return {reinterpret_cast<const T*>(begin_ + offset), count};
  }
  void find_symbols() {
    const auto& header = array<ElfW(Ehdr)>(0, 1)[0];
    sections_ = array<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
    for (const auto& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols_ = array<ElfW(Sym)>(section.sh_offset, section.sh_size / sizeof(ElfW(Sym)));
      names_ = reinterpret_cast<const char*>(begin_ + sections_[section.sh_link].sh_offset);
    }
  }

  const std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  std::span<const ElfW(Shdr)> sections_;
  std::span<const ElfW(Sym)> symbols_;
  const char* names_ = nullptr;
  std::uintptr_t moved_by_ = 0;
};

Variables find(const void* kernel) {
  static const ProgramFile program;
  const auto symbols = program.symbols();
  // Local symbols (those of unnamed namespaces) follow the symbol of their source file. Another
  // file may have symbols of the same names.
  const auto file_of = [&](std::size_t i) {
    if (ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL) return symbols.size();
    while (i > 0 && ELF64_ST_TYPE(symbols[i].st_info) != STT_FILE) --i;
    return i;
  };
  std::string its_own;  // a kernel is _Z…, its variables are _ZZ…E…
  std::size_t file = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (program.address(symbols[i]) == kernel && program.name(symbols[i]).starts_with("_Z")) {
      its_own = "_ZZ" + std::string(program.name(symbols[i]).substr(2)) + "E";
      file = file_of(i);
    }
  }
  Variables variables;
  for (std::size_t i = 0; i < symbols.size() && !its_own.empty(); ++i) {
    if (program.name(symbols[i]).starts_with(its_own) && program.is_writable(symbols[i]) &&
        file_of(i) == file) {
      variables.emplace_back(program.address(symbols[i]), symbols[i].st_size);
    }
  }
  return variables;
}

#else

Variables find(const void*) { return {}; }

#endif

}  // namespace

const Variables& static_shared(const void* kernel) {
  static std::map<const void*, Variables> known;
  const auto at = known.find(kernel);
  return at != known.end() ? at->second : known.emplace(kernel, find(kernel)).first->second;
}

}  // namespace t2t::stand_in
