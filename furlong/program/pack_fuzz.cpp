// A pack whose pack.toml is anything. What verifies must be what seal_pack makes: nothing else has the right
// hashes.
#include <cstdint>
#include <cstdlib>

#include "furlong/program/internal/testing.h"
#include "furlong/program/pack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace furlong;
  using namespace furlong::program;
  PackContents pack;
  pack.files["add.cl"] = furlong::program::testing::kSource;
  pack.files["add.toml"] = furlong::program::testing::kProgram;
  pack.files["pack.toml"] = std::string(reinterpret_cast<const char*>(data), size);
  const auto kind = verify_contents(pack, "p");
  if (!kind) {
    if (kind.error().code() == Code::internal) std::abort();
    return 0;
  }
  // Every byte of a file that verifies counts: without its last one it must not.
  PackContents torn = pack;
  torn.files["pack.toml"].pop_back();
  if (verify_contents(torn, "p")) std::abort();
  return 0;
}
