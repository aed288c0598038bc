#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_folder.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<record::Tuning> tuning_argument(const std::string& text, const std::string& name,
                                       const std::string& wanted) {
  auto parsed = record::parse_tuning(text, name);
  if (!parsed) return Error(std::move(parsed).error()).with(wanted);
  record::Tuning tuning = *std::move(parsed);
  FURLONG_CHECK(fleet::check_tuning_names(tuning, name));
  return tuning;
}

Status read_changes(const Arguments& arguments, fleet::PublishRequest& request) {
  request.tuning.drop = arguments.flag("--no-tuning");
  request.tuning_override.drop = arguments.flag("--no-override");
  if (arguments.given("--tuning")) {
    if (request.tuning.drop) return fail(Code::invalid, "--tuning and --no-tuning: one of the two");
    const std::string file = arguments.value("--tuning");
    FURLONG_TRY(const std::string text, as_input(system_files().read(file, fleet::largest_manifest_body)));
    FURLONG_TRY(
        request.tuning.replace,
        tuning_argument(text, file, "--tuning wants a tuning, as furlong fleet tuning --write makes it"));
  }
  if (arguments.given("--override")) {
    if (request.tuning_override.drop)
      return fail(Code::invalid, "--override and --no-override: one of the two");
    const std::string json = arguments.value("--override");
    if (system_files().exists(json))
      return fail(
          Code::invalid,
          "--override takes the JSON itself, and {0} is the name of a file: --override \"$(cat {0})\"", json);
    FURLONG_TRY(request.tuning_override.replace,
                tuning_argument(json, "--override", "--override wants the JSON of a tuning itself"));
  }
  return {};
}

Result<fleet::PublishRequest> publish_request(const Arguments& arguments) {
  fleet::PublishRequest request;
  request.channel = arguments.value("--channel");
  request.minimum_client = arguments.value("--minimum-client");
  request.lift_stop = arguments.flag("--lift-stop");
  if (arguments.flag("--canary") && arguments.given("--percent"))
    return fail(Code::invalid, "--canary is --percent 0: one of the two");
  if (arguments.flag("--canary")) request.percent = 0;
  if (arguments.given("--percent")) {
    FURLONG_TRY(request.percent, arguments.number("--percent", 100, 0, 100));
  }
  FURLONG_TRY(request.expires_days, arguments.number("--expires-days", 30, 0.0001, 3650));
  FURLONG_CHECK(read_changes(arguments, request));
  return request;
}

std::string part_text(const std::optional<record::Tuning>& tuning) {
  return tuning ? fmt::format("{} cards", tuning->cards.size()) : "none";
}

void say_manifest(const Arguments& arguments, const fleet::ManifestDocument& manifest, const fs::path& file,
                  bool dry) {
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"state", dry ? "dry-run" : "published"},
                               {"version", manifest.version},
                               {"channel", manifest.channel},
                               {"percent", manifest.percent},
                               {"expires", iso_time(manifest.expires_us)},
                               {"cards", manifest.tuning ? Json(manifest.tuning->cards.size()) : Json()},
                               {"file", file.string()}}));
    return;
  }
  print_out(fmt::format("manifest {} for {}: tuning {}, override {}, {}% of the machines{}, until {}\n{}{}\n",
                        manifest.version, manifest.channel, part_text(manifest.tuning),
                        part_text(manifest.tuning_override), manifest.percent,
                        manifest.percent < 100 ? " and all canaries" : "", iso_time(manifest.expires_us),
                        dry ? "dry run: " : "", file.string()));
}

/// Only a dry run leaves this file: by it the next one knows what it may write over.
fs::path payload_file(const fs::path& folder) { return folder / "payload.json"; }

/// A dry run's manifest is not fit to be served, and must not take the place of one that is: neither in a
/// fleet's folder nor where a hub looks for the copy that it serves.
Status check_dry_folder(const fs::path& out) {
  const auto holds = [](const fs::path& file) { return system_files().exists(file); };
  if (holds(fleet_root_file(out)))
    return fail(
        Code::invalid,
        "--out {}: this folder holds a fleet (root.json is there), and a dry run would write over its "
        "manifest; name another folder",
        out.string());
  if (holds(payload_file(out))) return {};
  for (const fs::path& file : {fleet_body_file(out), out / "tuning.json", out / "override.json"})
    if (holds(file))
      return fail(
          Code::invalid,
          "--out {}: {} is there, and of no dry run (those leave payload.json beside it); name another "
          "folder",
          out.string(), file.filename().string());
  return {};
}

/// The documents as files, to be looked at before anything is signed for real.
Status write_dry(const fleet::ManifestBody& body, const fleet::ManifestDocument& manifest,
                 const fs::path& out) {
  // First of all, so that a dry run that ends half way is known for one.
  FURLONG_CHECK(system_files().write_atomic(payload_file(out), body.manifest->payload));
  FURLONG_CHECK(system_files().write_atomic(fleet_body_file(out), print(body)));
  if (manifest.tuning)
    FURLONG_CHECK(system_files().write_atomic(out / "tuning.json", print(*manifest.tuning)));
  if (manifest.tuning_override)
    FURLONG_CHECK(system_files().write_atomic(out / "override.json", print(*manifest.tuning_override)));
  return {};
}

Result<int> run(const Arguments& arguments) {
  const bool dry = arguments.flag("--dry-run");
  if (dry != arguments.given("--out")) return fail(Code::invalid, "--dry-run and --out DIR go together");
  if (dry) FURLONG_CHECK(check_dry_folder(arguments.value("--out")));
  FURLONG_TRY(FleetFolder fleet, read_fleet(arguments.positionals[0]));
  const fleet::RootDocument& root = fleet.checked.root.document;
  const auto* current = fleet.checked.manifest ? &*fleet.checked.manifest : nullptr;
  const auto* stop = fleet.checked.stop ? &*fleet.checked.stop : nullptr;
  fleet::Envelope envelope;
  if (arguments.flag("--add")) {
    FURLONG_CHECK(only_adds(arguments));
    FURLONG_TRY(envelope, read_waiting(fleet.path, "manifest"));
  } else {
    FURLONG_TRY(const auto request, publish_request(arguments));
    FURLONG_TRY(const auto next,
                fleet::next_manifest(root, current, stop, request, system_clock().wall_us()));
    envelope = fleet::envelope_of(next);
  }
  FURLONG_TRY(const auto manifest, fleet::parse_manifest(envelope.payload, "the manifest"));
  if (manifest.version != (current == nullptr ? 1 : current->version + 1) || manifest.root != root.version)
    return fail(Code::invalid, "what waits is manifest {} under root {}: that is past; publish anew",
                manifest.version, manifest.root);
  if (!dry || arguments.given("--key")) FURLONG_CHECK(sign_with_keys(arguments, {&root.publish}, envelope));
  fleet.body.manifest = envelope;
  if (stop == nullptr || manifest.lifts_stop >= stop->version) fleet.body.stop.reset();
  if (dry) {
    const fs::path out = arguments.value("--out");
    FURLONG_CHECK(write_dry(fleet.body, manifest, out));
    say_manifest(arguments, manifest, fleet_body_file(out), true);
    return exit_ok;
  }
  if (const auto good = fleet::open_manifest(root, envelope); !good) {
    FURLONG_CHECK(write_waiting(fleet.path, "manifest", envelope));
    return say_waiting(arguments, "manifest", good.error().message());
  }
  FURLONG_CHECK(write_fleet(fleet.body, fleet.path));
  FURLONG_CHECK(remove_waiting(fleet.path, "manifest"));
  say_manifest(arguments, manifest, fleet_body_file(fleet.path), false);
  if (fleet.body.stop && manifest.version >= stop->from)
    print_err(fmt::format("stop {} still holds: machines race in full until --lift-stop\n", stop->version));
  return exit_ok;
}

std::vector<OptionSpec> options() {
  return {{.name = "--tuning",
           .value_name = "FILE",
           .help = "The new tuning. Default: as before.",
           .complete = "file"},
          {.name = "--no-tuning", .value_name = "", .help = "No tuning: every machine races in full."},
          {.name = "--override",
           .value_name = "JSON",
           .help = "Rows that replace those of the tuning. Default: as before."},
          {.name = "--no-override", .value_name = "", .help = "No such rows."},
          {.name = "--percent",
           .value_name = "P",
           .help = "Share of the machines, besides the canaries. Default: as before, else 100."},
          {.name = "--canary", .value_name = "", .help = "The canaries alone: --percent 0."},
          {.name = "--expires-days", .value_name = "D", .help = "Days until pins lapse. Default 30."},
          {.name = "--channel", .value_name = "NAME", .help = "Default: as before, else stable."},
          {.name = "--minimum-client",
           .value_name = "V",
           .help = "The oldest Furlong that may take it. Default: as before."},
          {.name = "--lift-stop",
           .value_name = "",
           .help = "The stop that stands does not hold for this manifest."},
          {.name = "--dry-run",
           .value_name = "",
           .help = "Change nothing; write what would be published to --out."},
          {.name = "--out",
           .value_name = "DIR",
           .help = "Folder for a dry run: a new one, or a former dry run's; never a fleet's.",
           .complete = "folder"},
          fleet_key_option("publish"),
          fleet_add_option("manifest"),
          fleet_json_option()};
}

}  // namespace

CommandSpec fleet_publish_command() {
  return {
      .name = "fleet publish",
      .summary = "Sign the next manifest: the fleet's tuning, for some or all of its machines.",
      .description =
          "Writes manifest.json in the folder, which the hub serves. What no option names is carried over "
          "from the "
          "manifest before. Machines that the percentage leaves out keep what they have; a larger percentage "
          "holds all machines of a smaller one.",
      .positionals = {fleet_positional()},
      .options = options(),
      .examples = {{"furlong fleet publish fleet --tuning tuning.json --canary --key publish.key", ""},
                   {"furlong fleet publish fleet --percent 25 --key publish.key",
                    "The same tuning, further."},
                   {"furlong fleet publish fleet --no-tuning --dry-run --out look",
                    "Without a key, to look at it."}},
      .run = run};
}

}  // namespace furlong::app
