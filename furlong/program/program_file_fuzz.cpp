// The reader of program files on anything: an error or a program that can be used, never a crash.
#include <cstdint>
#include <cstdlib>

#include "furlong/program/instance.h"
#include "furlong/program/internal/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace furlong;
  using namespace furlong::program;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program = furlong::program::testing::read(text);
  if (!program) {
    if (program.error().code() == Code::internal || program.error().message().empty()) std::abort();
    return 0;
  }
  (void)(*program)->source_hash();
  for (const Edition& edition : (*program)->editions) {
    const auto instance = Instance::make(*program, edition.language, {}, {});
    if (!instance) continue;
    const lattice::Point base = instance->lattice().base();
    (void)instance->plan(base);
    (void)instance->work(base);
    if (instance->select("base")) (void)instance->select("catalogue");
  }
  return 0;
}
