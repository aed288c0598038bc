// furlong_bench_compare BEFORE AFTER: what ./dev bench --compare calls.
// Exit 0: nothing regressed. 2: bad usage or input. 3: something regressed.

#include <cstdio>
#include <string>

#include "bench/compare.h"
#include "furlong/base/os/file.h"

namespace {

int report(const furlong::Error& error) {
  std::fprintf(stderr, "bench --compare: %s\n", error.text().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: ./dev bench --compare BEFORE.json AFTER.json\n", stderr);
    return 2;
  }
  const auto before = furlong::system_files().read(argv[1]);
  if (!before) return report(before.error());
  const auto after = furlong::system_files().read(argv[2]);
  if (!after) return report(after.error());
  const auto result = furlong::bench::compare(*before, argv[1], *after, argv[2]);
  if (!result) return report(result.error());
  std::fputs(result->text().c_str(), stdout);
  return result->regressed() ? 3 : 0;
}
