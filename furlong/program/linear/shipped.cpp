#include "furlong/program/linear/shipped.h"

#include <array>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::program::linear {

std::span<const std::string_view> shipped_names() {
  static constexpr std::array<std::string_view, 3> kNames{"gemm", "gemm_real", "gemv"};
  return kNames;
}

Result<std::shared_ptr<const Program>> shipped_program(std::string_view name) {
  const std::string_view text = shipped_program_text(name);
  const std::vector<std::string> known(shipped_names().begin(), shipped_names().end());
  if (text.empty())
    return fail(Code::invalid, "there is no linear-algebra program '{}'{}", name,
                did_you_mean(std::string(name), known));
  return parse_program(text, fmt::format("{}.toml", name), {}, system_files());
}

}  // namespace furlong::program::linear
