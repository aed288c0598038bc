#include "apps/furlong/fleet_folder.h"

#include <algorithm>
#include <set>

#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view public_key_head = "furlong public key ";

fs::path waiting_file(const fs::path& folder, const std::string& what) {
  return folder / ("waiting-" + what + ".json");
}

}  // namespace

fs::path fleet_body_file(const fs::path& folder) { return folder / "manifest.json"; }
fs::path fleet_root_file(const fs::path& folder) { return folder / "root.json"; }

Result<FleetFolder> read_fleet(const fs::path& folder) {
  const fs::path file = fleet_body_file(folder);
  if (!system_files().exists(file))
    return fail(Code::invalid, "{} holds no fleet: {} is not there (furlong fleet root begins one)",
                folder.string(), file.filename().string());
  FURLONG_TRY(const std::string text, as_input(system_files().read(file, fleet::largest_manifest_body)));
  FleetFolder fleet{.path = folder, .body = {}, .checked = {}};
  FURLONG_TRY(fleet.body, fleet::parse_manifest_body(text, file.string()));
  auto checked = fleet::check_body(fleet.body);
  if (!checked) return Error(std::move(checked).error()).with(file.string());
  fleet.checked = *std::move(checked);
  return fleet;
}

Status write_fleet(const fleet::ManifestBody& body, const fs::path& folder) {
  FURLONG_TRY(const auto checked, fleet::check_body(body));
  const std::string text = print(body);
  // What machines would refuse is not written.
  FURLONG_CHECK(fleet::parse_manifest_body(text, "the new body"));
  FURLONG_CHECK(system_files().write_atomic(fleet_root_file(folder), print(checked.root.envelope)));
  return system_files().write_atomic(fleet_body_file(folder), text);
}

Result<fleet::Envelope> read_waiting(const fs::path& folder, const std::string& what) {
  const fs::path file = waiting_file(folder, what);
  auto text = system_files().read(file, fleet::largest_manifest_body);
  if (!text) return fail(Code::invalid, "no {} waits for a signature: {}", what, text.error().message());
  return fleet::parse_envelope(*text, file.string());
}

Status write_waiting(const fs::path& folder, const std::string& what, const fleet::Envelope& envelope) {
  return system_files().write_atomic(waiting_file(folder, what), print(envelope));
}

Status remove_waiting(const fs::path& folder, const std::string& what) {
  return system_files().remove(waiting_file(folder, what));
}

Status sign_with_keys(const Arguments& arguments, const std::vector<const fleet::RoleKeys*>& roles,
                      fleet::Envelope& envelope) {
  if (!arguments.given("--key")) return fail(Code::invalid, "--key FILE is missing");
  // Whoever adds a signature did not make the document: it is shown, to be read.
  if (arguments.flag("--add"))
    print_err(fmt::format("to be signed:\n{}\n", without_controls(envelope.payload.substr(0, 4096))));
  for (const std::string& file : arguments.values("--key")) {
    FURLONG_TRY(const KeyPair key, read_signing_key(file));
    const auto has = [&](const fleet::RoleKeys* role) {
      return std::ranges::find(role->keys, key.public_key) != role->keys.end();
    };
    if (std::ranges::none_of(roles, has))
      return fail(Code::denied, "{}: key {} may not sign this: the root does not name it for that role", file,
                  key.public_key.id());
    add_signature(envelope, key);
  }
  return {};
}

std::string public_key_text(const PublicKey& key) {
  return fmt::format("{}{}\n", public_key_head, key.hex());
}

Result<PublicKey> public_key_argument(const std::string& text) {
  if (text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos)
    return PublicKey::parse(text);
  FURLONG_TRY(const std::string bytes, as_input(system_files().read(text, 4096)));
  const std::string_view line = trim(bytes);
  if (!line.starts_with(public_key_head))
    return fail(Code::invalid,
                "{}: this is no public key; furlong fleet keygen writes one beside the secret "
                "key, with the ending .pub",
                text);
  return PublicKey::parse(line.substr(public_key_head.size()));
}

int say_waiting(const Arguments& arguments, const std::string& what, const std::string& why) {
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1}, {"state", "waiting"}, {"what", what}, {"why", why}}));
  else
    print_out(
        fmt::format("the {} waits for more signatures: {}\nnothing has changed yet; the next signer "
                    "repeats the command with --add and a key of their own\n",
                    what, why));
  return exit_ok;
}

PositionalSpec fleet_positional() {
  return {.name = "FOLDER", .help = "The fleet's folder: manifest.json and root.json.", .complete = "folder"};
}

OptionSpec fleet_key_option(const std::string& role) {
  return {.name = "--key",
          .value_name = "FILE",
          .help = fmt::format("Secret key of the role {}.", role),
          .repeatable = true,
          .complete = "file"};
}

OptionSpec fleet_add_option(const std::string& what) {
  return {.name = "--add",
          .value_name = "",
          .help = fmt::format("Add a signature to the {} that waits in the folder.", what)};
}

Status only_adds(const Arguments& arguments) {
  static const std::set<std::string_view> beside{"--add", "--key", "--json", "--dry-run", "--out"};
  for (const auto& [name, values] : arguments.options)
    if (!beside.contains(name))
      return fail(Code::invalid,
                  "--add signs what waits as it is; {} would change it: without --add begin anew", name);
  return {};
}

OptionSpec fleet_json_option() { return {.name = "--json", .value_name = "", .help = "As JSON."}; }

}  // namespace furlong::app
