#include "bench/program.h"

#include "furlong/base/os/process.h"

namespace furlong::bench {

Result<std::filesystem::path> program() {
  FURLONG_TRY(const auto own, own_executable());
  for (auto folder = own.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (std::filesystem::is_regular_file(folder / "furlong")) return folder / "furlong";
  }
  return fail(Code::unavailable, "no furlong program beside {}: build it first (./dev build)", own.string());
}

}  // namespace furlong::bench
