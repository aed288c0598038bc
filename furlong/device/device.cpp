#include "furlong/device/device.h"

#include <array>

#include "furlong/base/hash.h"
#include "furlong/base/text.h"

namespace furlong::device {
namespace {

struct Named {
  Language language;
  std::string_view name;
};
constexpr std::array<Named, 4> kLanguages{{{Language::host, "host"},
                                           {Language::opencl, "opencl"},
                                           {Language::cuda, "cuda"},
                                           {Language::metal, "metal"}}};

}  // namespace

std::string_view language_name(Language language) {
  for (const Named& row : kLanguages) {
    if (row.language == language) return row.name;
  }
  return "unknown";
}

Result<Language> parse_language(std::string_view text) {
  std::vector<std::string> names;
  for (const Named& row : kLanguages) {
    if (row.name == text) return row.language;
    names.emplace_back(row.name);
  }
  return fail(Code::invalid, "there is no language '{}'{} (languages: {})", text, did_you_mean(text, names),
              join(names, ", "));
}

std::string Silicon::hash() const {
  Hasher hasher;
  hasher.add_field("furlong silicon 1").add_field(vendor).add_field(arch);
  hasher.add_field(std::to_string(multiprocessors)).add_field(std::to_string(memory_bytes));
  hasher.add_field(std::to_string(memory_clock_mhz));
  return hasher.finish().brief();
}

std::string Facts::address() const { return fmt::format("{}:{}", backend, index); }

}  // namespace furlong::device
