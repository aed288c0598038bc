#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_folder.h"
#include "apps/furlong/session.h"
#include "apps/furlong/version.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Json signers_json(const fleet::Envelope& envelope, const fleet::RoleKeys& role) {
  Json ids = Json::array();
  for (const PublicKey& key : fleet::signers(envelope, role)) ids.push_back(key.id());
  return ids;
}

void say(const Arguments& arguments, const fleet::Trust& trust, const fleet::Standing& now) {
  const auto& root = trust.root.document;
  Json json{{"schema", 1},
            {"product", root.product},
            {"root", root.version},
            {"root_expires", iso_time(root.expires_us)}};
  std::string text =
      fmt::format("root      {} of {}, until {}\n", root.version, root.product, iso_time(root.expires_us));
  if (trust.manifest) {
    const auto& manifest = trust.manifest->document;
    const Json ids = signers_json(trust.manifest->envelope, root.publish);
    json["manifest"] = {{"version", manifest.version},
                        {"channel", manifest.channel},
                        {"issued", iso_time(manifest.issued_us)},
                        {"expires", iso_time(manifest.expires_us)},
                        {"percent", manifest.percent},
                        {"minimum_client", manifest.minimum_client},
                        {"signers", ids}};
    text +=
        fmt::format("manifest  {} for {}, {}% of the machines, until {}; signed by {}\n", manifest.version,
                    manifest.channel, manifest.percent, iso_time(manifest.expires_us), ids.dump());
    text += fmt::format(
        "tuning    {}\noverride  {}\n",
        manifest.tuning ? fmt::format("{} cards", manifest.tuning->cards.size()) : "none",
        manifest.tuning_override ? fmt::format("{} cards", manifest.tuning_override->cards.size()) : "none");
  }
  if (trust.stop) {
    json["stop"] = {{"version", trust.stop->document.version}, {"from", trust.stop->document.from}};
    text += fmt::format("stop      {}: race locally from manifest {} on\n", trust.stop->document.version,
                        trust.stop->document.from);
  }
  json["pins"] = now.tuning != nullptr || now.tuning_override != nullptr;
  json["note"] = now.note;
  if (!now.note.empty()) text += fmt::format("workers race in full: {}\n", now.note);
  print_out(arguments.flag("--json") ? json_pretty(json) : text);
}

/// As a machine of the canary group would that has the root pinned and has seen nothing yet.
Result<int> run(const Arguments& arguments) {
  fs::path file = arguments.positionals[0];
  std::error_code none;
  if (fs::is_directory(file, none)) file = fleet_body_file(file);
  const fs::path root_file = arguments.value("--root", fleet_root_file(file.parent_path()).string());
  FURLONG_TRY(const std::string root_text, as_input(system_files().read(root_file, 1u << 20)));
  FURLONG_TRY(const auto root_envelope, fleet::parse_envelope(root_text, root_file.string()));
  FURLONG_TRY(const auto root, fleet::open_pinned_root(root_envelope));
  FURLONG_TRY(const std::string text, as_input(system_files().read(file, fleet::largest_manifest_body)));
  FURLONG_TRY(const auto body, fleet::parse_manifest_body(text, file.string()));
  const fleet::Client client{.machine = {},
                             .channel = arguments.value("--channel", "stable"),
                             .canary = true,
                             .version = version_text()};
  const std::int64_t now_us = system_clock().wall_us();
  fleet::Trust trust = fleet::trust_from(root);
  FURLONG_CHECK_DOING(fleet::take_roots(trust, body.roots), "{}", file.string());
  if (body.stop) FURLONG_CHECK_DOING(fleet::take_stop(trust, *body.stop, client), "{}", file.string());
  bool taken = false;
  if (body.manifest)
    FURLONG_CHECK_DOING(fleet::take_manifest(trust, *body.manifest, client, now_us, taken), "{}",
                        file.string());
  say(arguments, trust, fleet::standing(trust, now_us));
  return exit_ok;
}

}  // namespace

CommandSpec fleet_verify_command() {
  return {.name = "fleet verify",
          .summary = "Check a manifest as a machine would, and say what is in it.",
          .description = "Exit code 2 and the reason when a machine would refuse it.",
          .positionals = {{.name = "FILE", .help = "The fleet's folder, or a file that a hub served."}},
          .options = {{.name = "--root",
                       .value_name = "FILE",
                       .help = "The pinned root. Default: root.json beside it.",
                       .complete = "file"},
                      {.name = "--channel",
                       .value_name = "NAME",
                       .help = "The machine's channel. Default stable."},
                      fleet_json_option()},
          .examples = {{"furlong fleet verify fleet", ""},
                       {"furlong fleet verify served.json --root /etc/furlong/root.json", ""}},
          .run = run};
}

}  // namespace furlong::app
