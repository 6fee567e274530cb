#include "tests/cuda/emulation/kernel_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace attnscope::cuda::emulation {
namespace {

using Names = std::map<std::uintptr_t, std::string>;

int take_first_base(dl_phdr_info* info, std::size_t, void* base) {
  *static_cast<std::uintptr_t*>(base) = info->dlpi_addr;
  return 1;  // the program itself comes first
}

// Our own program, as the linker wrote it: not checked any further.
Names read_names() {
  Names names;
  std::ifstream file("/proc/self/exe", std::ios::binary | std::ios::ate);
  std::vector<char> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  if (bytes.size() < sizeof(ElfW(Ehdr)) ||
      !file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return names;
  }
  std::uintptr_t base = 0;
  dl_iterate_phdr(&take_first_base, &base);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes.data() + header->e_shoff);
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) {
      continue;
    }
    const char* strings = bytes.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes.data() + sections[s].sh_offset);
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); ++i) {
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_value != 0) {
        names.emplace(base + symbols[i].st_value, strings + symbols[i].st_name);
      }
    }
  }
  return names;
}

}  // namespace

std::string kernel_name(const void* kernel) {
  static const Names names = read_names();
  const auto found = names.find(reinterpret_cast<std::uintptr_t>(kernel));
  if (found == names.end()) {
    std::ostringstream text;
    text << kernel;
    return text.str();
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(found->second.c_str(), nullptr, nullptr, &status);
  const std::string name = status == 0 ? demangled : found->second;
  std::free(demangled);
  return name;
}

}  // namespace attnscope::cuda::emulation
