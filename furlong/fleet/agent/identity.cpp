#include "furlong/fleet/agent/identity.h"

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

}  // namespace furlong::fleet
