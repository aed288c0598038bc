#include "furlong/fleet/agent/identity.h"

#include "furlong/base/bytes.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"

namespace furlong::fleet {

Result<KeyPair> machine_key(Files& files, const std::filesystem::path& file) {
  const auto text = files.read(file, 4096);
  if (text) {
    const auto seed = from_hex(trim(*text));
    if (!seed || seed->size() != 32)
      return fail(
          Code::corrupt,
          "{}: this is no machine key (64 hexadecimal digits). Restore it from a backup; or remove it, and "
          "enrol this machine again as a new one",
          file.string());
    return KeyPair::from_seed(*seed);
  }
  if (text.error().code() != Code::unavailable) return text.error();
  const KeyPair key = KeyPair::generate();
  FURLONG_CHECK(files.write_atomic_secret(file, to_hex(key.seed()) + "\n"));
  return key;
}

std::uint64_t agent_seed(const PublicKey& key, Clock& clock, std::uint64_t more) {
  std::uint64_t seed = load_le<std::uint64_t>(key.bytes.data());
  // Mixed after each: two that differ alike must not cancel.
  for (const std::uint64_t each :
       {static_cast<std::uint64_t>(clock.now_ns()), static_cast<std::uint64_t>(clock.wall_us()), more})
    seed = splitmix64(seed) ^ each;
  return splitmix64(seed);
}

}  // namespace furlong::fleet
