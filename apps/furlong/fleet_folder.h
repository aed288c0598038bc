#pragma once
// The folder of a fleet's operator: the body that the hub serves, the newest root, and what waits for more
// signatures. What the commands `furlong fleet …` share.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/furlong/command.h"
#include "furlong/base/os/file.h"
#include "furlong/base/sign.h"
#include "furlong/fleet/manifest/publish.h"

namespace furlong::app {

struct FleetFolder {
  std::filesystem::path path;
  fleet::ManifestBody body;
  fleet::CheckedBody checked;
};

/// FOLDER/manifest.json: what the hub serves. FOLDER/root.json: the newest root, for the machines to pin.
std::filesystem::path fleet_body_file(const std::filesystem::path& folder);
std::filesystem::path fleet_root_file(const std::filesystem::path& folder);

/// `invalid` when there is no fleet in it, `denied` when its signatures do not hold.
Result<FleetFolder> read_fleet(const std::filesystem::path& folder);
/// Checks it once more, then writes root.json and manifest.json to `folder`, each atomically.
Status write_fleet(const fleet::ManifestBody& body, const std::filesystem::path& folder);

/// A document on its way to enough signatures, in FOLDER/waiting-<what>.json.
Result<fleet::Envelope> read_waiting(const std::filesystem::path& folder, const std::string& what);
Status write_waiting(const std::filesystem::path& folder, const std::string& what,
                     const fleet::Envelope& envelope);
Status remove_waiting(const std::filesystem::path& folder, const std::string& what);

/// Signs with every --key. `denied`: a key that has none of the roles.
Status sign_with_keys(const Arguments& arguments, const std::vector<const fleet::RoleKeys*>& roles,
                      fleet::Envelope& envelope);
/// A public key: 64 hexadecimal digits, or a file that `furlong fleet keygen` wrote (NAME.pub). A secret key
/// looks the same in a file, so only that form is taken.
Result<PublicKey> public_key_argument(const std::string& text);
std::string public_key_text(const PublicKey& key);

/// "waits" in --json and for people, of a document that too few have signed.
int say_waiting(const Arguments& arguments, const std::string& what, const std::string& why);

/// `invalid` when there is, beside --add, an option that says what the document should hold.
Status only_adds(const Arguments& arguments);

PositionalSpec fleet_positional();
OptionSpec fleet_key_option(const std::string& role);
OptionSpec fleet_add_option(const std::string& what);
OptionSpec fleet_json_option();

}  // namespace furlong::app
