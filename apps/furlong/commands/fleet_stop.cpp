#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_folder.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(FleetFolder fleet, read_fleet(arguments.positionals[0]));
  const fleet::RootDocument& root = fleet.checked.root.document;
  if (!fleet.checked.manifest) return fail(Code::invalid, "nothing is published that could be stopped");
  fleet::Envelope envelope;
  if (arguments.flag("--add")) {
    FURLONG_CHECK(only_adds(arguments));
    FURLONG_TRY(envelope, read_waiting(fleet.path, "stop"));
  } else {
    FURLONG_TRY(const auto from,
                arguments.integer("--from", 0, 1, static_cast<std::int64_t>(fleet::last_version)));
    // Whoever stops means what machines have now: such a stop would look as if it had done that.
    if (const std::uint64_t current = fleet.checked.manifest->version;
        static_cast<std::uint64_t>(from) > current)
      return fail(
          Code::invalid,
          "--from {0}: this stop would not hold for the current manifest {1}; leave --from out, or name "
          "one up to {1}",
          from, current);
    FURLONG_TRY(
        const auto next,
        fleet::next_stop(root, *fleet.checked.manifest, fleet.checked.stop ? &*fleet.checked.stop : nullptr,
                         static_cast<std::uint64_t>(from), system_clock().wall_us()));
    envelope = fleet::envelope_of(next);
  }
  FURLONG_CHECK(sign_with_keys(arguments, {&root.stop}, envelope));
  const auto stop = fleet::open_stop(root, envelope);
  if (!stop) {
    FURLONG_CHECK(write_waiting(fleet.path, "stop", envelope));
    return say_waiting(arguments, "stop", stop.error().message());
  }
  if (fleet.checked.stop && stop->version <= fleet.checked.stop->version)
    return fail(Code::invalid, "what waits is stop {}, and stop {} is there already: stop anew",
                stop->version, fleet.checked.stop->version);
  fleet.body.stop = envelope;
  FURLONG_CHECK(write_fleet(fleet.body, fleet.path));
  FURLONG_CHECK(remove_waiting(fleet.path, "stop"));
  if (arguments.flag("--json"))
    print_out(json_pretty(
        Json{{"schema", 1}, {"state", "stopped"}, {"stop", stop->version}, {"from", stop->from}}));
  else
    print_out(fmt::format("stop {}: race locally from manifest {} on\n", stop->version, stop->from));
  return exit_ok;
}

}  // namespace

CommandSpec fleet_stop_command() {
  return {
      .name = "fleet stop",
      .summary = "Withdraw the tuning: machines race in full again.",
      .description =
          "Holds for the manifest that is current (or from --from on) and all later ones, until "
          "furlong fleet publish --lift-stop. The stop key can say nothing else.",
      .positionals = {fleet_positional()},
      .options =
          {{.name = "--from",
            .value_name = "N",
            .help =
                "The first manifest that it holds for, at most the current one. Default: the current one."},
           fleet_key_option("stop"),
           fleet_add_option("stop"),
           fleet_json_option()},
      .examples = {{"furlong fleet stop fleet --key stop.key", ""}},
      .run = run};
}

}  // namespace furlong::app
