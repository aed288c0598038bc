#include "furlong/program/internal/signature_file.h"

#include <algorithm>

#include "furlong/base/toml.h"

namespace furlong::program::internal {
namespace {

// The context keeps a signature made for something else from being one of a pack.
Bytes signed_message(const Digest& content) {
  const std::string text = "furlong pack signature 1\n" + content.hex() + "\n";
  return Bytes(text.begin(), text.end());
}

std::string print(const PublicKey& key, const Signature& signature) {
  return fmt::format("format = 1\nkey = \"{}\"\nsignature = \"{}\"\n", key.hex(), to_hex(signature));
}

}  // namespace

std::string make_signature_file(const Digest& content, const KeyPair& key) {
  return print(key.public_key, sign(signed_message(content), key));
}

Result<PublicKey> check_signature_file(std::string_view text, const Digest& content, std::string_view name) {
  auto root = toml_parse(text, name);
  if (!root) return fail(Code::corrupt, "{}", root.error().text());
  const TomlNode* format = root->find("format");
  if (format == nullptr || format->integer() == nullptr)
    return fail(Code::corrupt, "{}: there is no format number", name);
  if (*format->integer() != 1)
    return fail(Code::incompatible, "{}: found signature format {}, expected 1", name, *format->integer());
  const TomlNode* key_node = root->find("key");
  const TomlNode* signature_node = root->find("signature");
  if (key_node == nullptr || key_node->string() == nullptr || signature_node == nullptr ||
      signature_node->string() == nullptr)
    return fail(Code::corrupt, "{}: 'key' or 'signature' is missing", name);
  auto key = PublicKey::parse(*key_node->string());
  if (!key) return fail(Code::corrupt, "{}: the key: {}", name, key.error().text());
  const auto bytes = from_hex(*signature_node->string());
  Signature signature{};
  if (!bytes || bytes->size() != signature.size())
    return fail(Code::corrupt, "{}: the signature is not 128 hexadecimal digits", name);
  std::copy(bytes->begin(), bytes->end(), signature.begin());
  if (print(*key, signature) != text)
    return fail(Code::corrupt, "{}: the file is not as it was written", name);
  if (!verify(signed_message(content), signature, *key))
    return fail(Code::denied, "{}: the signature of key {} is not over this pack", name, key->id());
  return *key;
}

}  // namespace furlong::program::internal
