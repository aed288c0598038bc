#include "tests/fake_cuda/image.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "furlong/base/hash.h"
#include "tests/fake_cuda/script.h"

namespace furlong::fake {
namespace {

constexpr std::string_view kMark = "FURLONGFAKE1";
constexpr std::size_t kDigest = 64;

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::uint64_t elf_length(const void* at) {
  const char* start = static_cast<const char*>(at);
  if (std::memcmp(start, ELFMAG, SELFMAG) != 0) return 0;
  const auto header = load<Elf64_Ehdr>(start);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  std::uint64_t end = header.e_shoff + std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = load<Elf64_Shdr>(start + header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

std::string Image::bytes() const {
  std::string table = arch + "\n" + std::to_string(toolkit_major) + "\n";
  for (const ImageEntry& entry : entries) {
    table += entry.lowered + "\t" + entry.name + "\t" + std::to_string(entry.registers) + "\t" +
             std::to_string(entry.shared_bytes) + "\t" + std::to_string(entry.max_threads) + "\n";
  }
  std::string out = object;
  out += kMark;
  const std::uint64_t length = table.size();
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += table;
  out += blake2b_256(as_bytes(out)).hex();
  return out;
}

std::optional<Image> Image::read(const void* at) {
  const std::uint64_t length = elf_length(at);
  const char* start = static_cast<const char*>(at);
  if (length == 0 || std::memcmp(start + length, kMark.data(), kMark.size()) != 0) return std::nullopt;
  const char* table = start + length + kMark.size();
  const auto table_length = load<std::uint64_t>(table);
  if (table_length > (1u << 20)) return std::nullopt;
  table += sizeof table_length;
  const std::string_view whole(start, static_cast<std::size_t>(table - start) + table_length);
  if (blake2b_256(as_bytes(whole)).hex() != std::string_view(start + whole.size(), kDigest))
    return std::nullopt;
  Image image;
  image.object.assign(start, length);
  const std::vector<std::string> lines = words(std::string_view(table, table_length), '\n');
  if (lines.size() < 2) return std::nullopt;
  image.arch = lines[0];
  image.toolkit_major = std::atoi(lines[1].c_str());
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const std::vector<std::string> fields = words(lines[i], '\t');
    if (fields.size() != 5) return std::nullopt;
    image.entries.push_back({fields[0], fields[1], std::atoi(fields[2].c_str()),
                             std::strtoull(fields[3].c_str(), nullptr, 10), std::atoi(fields[4].c_str())});
  }
  return image;
}

}  // namespace furlong::fake
