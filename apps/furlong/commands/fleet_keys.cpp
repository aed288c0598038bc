// Keys and roots: who may sign what for a fleet.

#include <algorithm>
#include <cmath>

#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_folder.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* role_names[] = {"root", "publish", "stop"};

Result<int> run_keygen(const Arguments& arguments) {
  if (!arguments.given("--out")) return fail(Code::invalid, "--out FILE is missing");
  const fs::path file = arguments.value("--out");
  const fs::path public_file = file.string() + ".pub";
  for (const fs::path& each : {file, public_file})
    if (system_files().exists(each))
      return fail(Code::invalid, "{} is there already; choose another --out", each.string());
  const KeyPair key = KeyPair::generate();
  FURLONG_CHECK(system_files().write_atomic_secret(file, to_hex(key.seed()) + "\n"));
  FURLONG_CHECK(system_files().write_atomic(public_file, public_key_text(key.public_key)));
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1},
                               {"secret", file.string()},
                               {"public", key.public_key.hex()},
                               {"id", key.public_key.id()}}));
  else
    print_out(fmt::format("secret key  {}\npublic key  {} ({})\nid          {}\n", file.string(),
                          key.public_key.hex(), public_file.string(), key.public_key.id()));
  return exit_ok;
}

/// Roles that the options name; a role that they do not name keeps what it had.
Status read_roles(const Arguments& arguments, fleet::RootDocument& document) {
  fleet::RoleKeys* const roles[] = {&document.root, &document.publish, &document.stop};
  for (std::size_t i = 0; i < std::size(roles); ++i) {
    const std::string keys = fmt::format("--{}-key", role_names[i]);
    const std::string threshold = fmt::format("--{}-threshold", role_names[i]);
    if (arguments.given(keys)) {
      *roles[i] = {};
      for (const std::string& text : arguments.values(keys)) {
        FURLONG_TRY(const PublicKey key, public_key_argument(text));
        roles[i]->keys.push_back(key);
      }
    }
    if (roles[i]->keys.empty()) return fail(Code::invalid, "{} KEY is missing", keys);
    FURLONG_TRY(const auto count, arguments.integer(threshold, roles[i]->threshold, 1, 64));
    roles[i]->threshold = static_cast<int>(count);
  }
  return {};
}

Status set_expiry(const Arguments& arguments, fleet::RootDocument& document) {
  FURLONG_TRY(const double days, arguments.number("--expires-days", 365, 0.001, 36'500));
  document.expires_us =
      system_clock().wall_us() / 1'000'000 * 1'000'000 + std::llround(days * 86'400) * 1'000'000;
  return {};
}

int say_root(const Arguments& arguments, const fleet::RootDocument& root, const fs::path& folder) {
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1},
                               {"state", "written"},
                               {"root", root.version},
                               {"product", root.product},
                               {"expires", iso_time(root.expires_us)},
                               {"file", fleet_root_file(folder).string()}}));
  else
    print_out(fmt::format("root {} of {}, until {}: {}\n", root.version, root.product,
                          iso_time(root.expires_us), fleet_root_file(folder).string()));
  return exit_ok;
}

Result<int> run_root(const Arguments& arguments) {
  const fs::path folder = arguments.positionals[0];
  if (system_files().exists(fleet_body_file(folder)))
    return fail(Code::invalid, "{} is there already; furlong fleet rotate makes the next root",
                fleet_body_file(folder).string());
  fleet::Envelope envelope;
  if (arguments.flag("--add")) {
    FURLONG_CHECK(only_adds(arguments));
    FURLONG_TRY(envelope, read_waiting(folder, "root"));
  } else {
    fleet::RootDocument document;
    document.product = arguments.value("--product");
    if (document.product.empty()) return fail(Code::invalid, "--product NAME is missing");
    FURLONG_CHECK(read_roles(arguments, document));
    FURLONG_CHECK(set_expiry(arguments, document));
    envelope = fleet::envelope_of(document);
  }
  FURLONG_TRY(const auto document, fleet::parse_root(envelope.payload, "the root"));
  FURLONG_CHECK(sign_with_keys(arguments, {&document.root}, envelope));
  if (const auto root = fleet::open_pinned_root(envelope); !root) {
    FURLONG_CHECK(write_waiting(folder, "root", envelope));
    return say_waiting(arguments, "root", root.error().message());
  }
  FURLONG_CHECK(write_fleet({.roots = {envelope}, .manifest = {}, .stop = {}}, folder));
  FURLONG_CHECK(remove_waiting(folder, "root"));
  return say_root(arguments, document, folder);
}

Result<int> run_rotate(const Arguments& arguments) {
  FURLONG_TRY(FleetFolder fleet, read_fleet(arguments.positionals[0]));
  const fleet::RootDocument& old = fleet.checked.root.document;
  fleet::Envelope envelope;
  if (arguments.flag("--add")) {
    FURLONG_CHECK(only_adds(arguments));
    FURLONG_TRY(envelope, read_waiting(fleet.path, "root"));
  } else {
    fleet::RootDocument document = old;
    ++document.version;
    FURLONG_CHECK(read_roles(arguments, document));
    FURLONG_CHECK(set_expiry(arguments, document));
    envelope = fleet::envelope_of(document);
  }
  FURLONG_TRY(const auto document, fleet::parse_root(envelope.payload, "the root"));
  if (document.version != old.version + 1)
    return fail(Code::invalid, "root {} does not follow root {}", document.version, old.version);
  FURLONG_CHECK(sign_with_keys(arguments, {&old.root, &document.root}, envelope));
  if (const auto next = fleet::open_next_root(old, envelope); !next) {
    FURLONG_CHECK(write_waiting(fleet.path, "root", envelope));
    return say_waiting(arguments, "root", next.error().message());
  }
  fleet.body.roots.push_back(envelope);
  const bool stop_ends = fleet.body.stop && !fleet::open_stop(document, *fleet.body.stop);
  if (stop_ends) fleet.body.stop.reset();
  FURLONG_CHECK(write_fleet(fleet.body, fleet.path));
  FURLONG_CHECK(remove_waiting(fleet.path, "root"));
  say_root(arguments, document, fleet.path);
  if (fleet.checked.manifest)
    print_err("the manifest was made under the root before: publish it again (furlong fleet publish)\n");
  if (stop_ends)
    print_err(
        "the stop was signed with keys that this root has no more, and holds no more: furlong fleet stop\n");
  return exit_ok;
}

std::vector<OptionSpec> root_options(bool first) {
  std::vector<OptionSpec> options;
  if (first) options.push_back({.name = "--product", .value_name = "NAME", .help = "The fleet's name."});
  const std::string otherwise = first ? "" : " Default: as before.";
  for (const char* const role : role_names) {
    options.push_back(
        {.name = fmt::format("--{}-key", role),
         .value_name = "KEY",
         .help = fmt::format("Public key of the role {}: digits, or a .pub file.{}", role, otherwise),
         .repeatable = true,
         .complete = "file"});
    options.push_back({.name = fmt::format("--{}-threshold", role),
                       .value_name = "N",
                       .help = fmt::format("How many keys of the role {} must sign.{}", role,
                                           first ? " Default 1." : otherwise)});
  }
  options.push_back(
      {.name = "--expires-days", .value_name = "D", .help = "Days until it expires. Default 365."});
  options.push_back(fleet_key_option("root"));
  options.push_back(fleet_add_option("root"));
  options.push_back(fleet_json_option());
  return options;
}

}  // namespace

CommandSpec fleet_keygen_command() {
  return {.name = "fleet keygen",
          .summary = "Make a key pair for one role of a fleet.",
          .description = "Root keys belong offline, the stop key on the hub; each key has one role.",
          .positionals = {},
          .options = {{.name = "--out",
                       .value_name = "FILE",
                       .help = "Where the secret key goes; the public key is FILE.pub.",
                       .complete = "file"},
                      fleet_json_option()},
          .examples = {{"furlong fleet keygen --out publish.key", ""}},
          .run = run_keygen};
}

CommandSpec fleet_root_command() {
  return {
      .name = "fleet root",
      .summary = "Begin a fleet: the first root, which says whose signatures count.",
      .description =
          "Machines pin root.json. Where one signer does not have enough keys, the root waits in "
          "the folder for the others.",
      .positionals = {fleet_positional()},
      .options = root_options(true),
      .examples = {{"furlong fleet root fleet --product our-fleet --root-key root.key.pub --publish-key "
                    "publish.key.pub --stop-key stop.key.pub --key root.key",
                    ""},
                   {"furlong fleet root fleet --add --key second-root.key", "The second of two signers."}},
      .run = run_root};
}

CommandSpec fleet_rotate_command() {
  return {.name = "fleet rotate",
          .summary = "Make the next root: other keys, other thresholds, a later expiry.",
          .description =
              "Signed by enough keys of the root before and of the new one. Machines follow by "
              "themselves, forget the highest version they saw, and drop what the new root's keys "
              "have not signed: publish right after.",
          .positionals = {fleet_positional()},
          .options = root_options(false),
          .examples = {{"furlong fleet rotate fleet --publish-key new.key.pub --key root.key", ""}},
          .run = run_rotate};
}

}  // namespace furlong::app
