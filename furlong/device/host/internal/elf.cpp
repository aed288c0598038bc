#include "furlong/device/host/internal/elf.h"

#include <elf.h>

#include <cstring>

#include "furlong/base/hash.h"

namespace furlong::device::host {
namespace {

// A copy: nothing says that the file's tables are aligned. False beyond the end of the file.
template <class T>
bool load_at(ByteView object, std::uint64_t offset, T& into) {
  if (offset > object.size() || object.size() - offset < sizeof(T)) return false;
  std::memcpy(&into, object.data() + offset, sizeof(T));
  return true;
}

// Relocations and dynamic names count: `sin` and `cos` are called through equal instructions.
bool counts(const Elf64_Shdr& section, std::string_view name) {
  if ((section.sh_flags & SHF_ALLOC) == 0) return false;
  switch (section.sh_type) {
    case SHT_PROGBITS:
    case SHT_RELA:
    case SHT_REL:
    case SHT_DYNSYM:
    case SHT_STRTAB:
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
      return !name.starts_with(".eh_frame") && !name.starts_with(".note");
    default:
      return section.sh_type == SHT_NOBITS;
  }
}

}  // namespace

std::string elf_code_hash(ByteView object) {
  Elf64_Ehdr header;
  if (!load_at(object, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return "";
  }
  Elf64_Shdr names;
  if (!load_at(object, header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof(names), names)) return "";
  Hasher hasher;
  bool any = false;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!load_at(object, header.e_shoff + std::uint64_t{i} * sizeof(section), section)) return "";
    if (names.sh_offset > object.size() || section.sh_name >= object.size() - names.sh_offset) return "";
    const char* start = reinterpret_cast<const char*>(object.data()) + names.sh_offset + section.sh_name;
    const std::size_t room = object.size() - names.sh_offset - section.sh_name;
    const std::string_view name(start, strnlen(start, room));
    if (!counts(section, name)) continue;
    hasher.add_field(name);
    if (section.sh_type == SHT_NOBITS) {
      hasher.add_field(std::to_string(section.sh_size));
      continue;
    }
    if (section.sh_offset > object.size() || section.sh_size > object.size() - section.sh_offset) return "";
    hasher.add_field(as_text(object.subspan(section.sh_offset, section.sh_size)));
    any = any || name.starts_with(".text");
  }
  return any ? hasher.finish().hex().substr(0, 32) : "";
}

bool is_shared_object(ByteView object) {
  Elf64_Ehdr header;
  return load_at(object, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN;
}

}  // namespace furlong::device::host
