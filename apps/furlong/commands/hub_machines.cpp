#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/stores.h"
#include "furlong/base/base64.h"
#include "furlong/base/json.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

constexpr std::int64_t day_us = 86'400'000'000;

Result<std::unique_ptr<fleet::Store>> open_there(const Arguments& arguments, bool read_only) {
  return fleet::open_store(store_kinds(), arguments.positionals[0],
                           {.create = false, .read_only = read_only});
}

/// `invalid` names the machine that was meant, where that can be known.
Result<fleet::Machine> known_machine(fleet::Store& store, const std::string& id) {
  FURLONG_TRY(std::optional<fleet::Machine> machine, store.machine(id));
  if (machine) return *std::move(machine);
  FURLONG_TRY(const std::vector<fleet::Machine> machines, store.machines());
  return fail(Code::invalid, "there is no machine '{}'{}", one_line(id), nearest_machine(machines, id));
}

// ---- token ----

Result<int> run_token(const Arguments& arguments) {
  FURLONG_TRY(const double days, arguments.number("--expires-days", 7, 1.0 / 1440, 3660));
  FURLONG_TRY(const auto store, fleet::open_store(store_kinds(), arguments.positionals[0]));
  const std::string text = make_secret_text();
  fleet::Token token{.digest = blake2b_256(text),
                     .label = arguments.value("--label"),
                     .canary = arguments.flag("--canary"),
                     .replaces = arguments.value("--replaces"),
                     .issued_us = system_clock().wall_us()};
  if (one_line(token.label) != token.label || token.label.size() > 200)
    return fail(Code::invalid, "--label: at most 200 bytes, without control characters");
  bool was_canary = false;
  if (!token.replaces.empty()) {
    FURLONG_TRY(const fleet::Machine old, known_machine(*store, token.replaces));
    // The same machine with a new key goes by its old name. Not its flag: whoever judges the fleet's
    // manifests is said each time.
    if (!arguments.given("--label")) token.label = old.label;
    was_canary = old.canary && !token.canary;
  }
  token.expires_us = token.issued_us + static_cast<std::int64_t>(days * static_cast<double>(day_us));
  FURLONG_CHECK(store->add_token(token));
  if (was_canary)
    print_err(fmt::format(
        "furlong hub token: {0} is a canary, and the machine that replaces it will be none until, "
        "once it is enrolled,\n  furlong hub canary '{1}' MACHINE on\n(or make the token with "
        "--canary; furlong hub machines '{1}' says its id)\n",
        token.replaces, fleet::shown_url(arguments.positionals[0])));
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"kind", "hub-token"},
                               {"token", text},
                               {"label", token.label},
                               {"canary", token.canary},
                               {"replaces", token.replaces},
                               {"expires", iso_time(token.expires_us)}}));
    return exit_ok;
  }
  // Alone on standard output, so that it can be sent into a file.
  print_out(text + "\n");
  print_err(fmt::format("furlong hub token: enrols one machine until {}; it is not shown again\n",
                        iso_time(token.expires_us)));
  return exit_ok;
}

// ---- machines ----

Json machine_json(const fleet::Machine& machine) {
  Json object{{"id", machine.id},
              {"label", machine.label},
              {"state", std::string(machine_state_name(machine.state))},
              {"canary", machine.canary},
              {"says_canary", machine.says_canary},
              {"enrolled", iso_time(machine.enrolled_us)},
              {"agent", machine.agent},
              {"manifest", machine.manifest},
              {"replaces", machine.replaces},
              {"accepted", machine.accepted},
              {"duplicate", machine.duplicate},
              {"refused", machine.refused},
              {"last_refusal", machine.last_refusal}};
  if (machine.seen_us != 0) object["seen"] = iso_time(machine.seen_us);
  return object;
}

/// A machine's own word makes it none, but whoever set it up meant it.
std::string canary_text(const fleet::Machine& machine) {
  if (machine.canary) return ", canary";
  return machine.says_canary ? ", calls itself a canary" : "";
}

Result<int> run_machines(const Arguments& arguments) {
  FURLONG_TRY(const auto store, open_there(arguments, true));
  FURLONG_TRY(const std::vector<fleet::Machine> machines, store->machines());
  if (arguments.flag("--json")) {
    Json list = Json::array();
    for (const fleet::Machine& machine : machines) list.push_back(machine_json(machine));
    print_out(json_pretty(Json{{"schema", 1}, {"kind", "hub-machines"}, {"machines", std::move(list)}}));
    return exit_ok;
  }
  if (machines.empty()) {
    print_out("no machine is enrolled: furlong hub token makes the token for one\n");
    return exit_ok;
  }
  Table table;
  for (const char* heading : {"machine", "label", "state", "seen", "agent", "manifest"})
    table.column(heading);
  for (const char* heading : {"accepted", "duplicate", "refused"}) table.column(heading, Table::Align::right);
  table.column("last refusal");
  for (const fleet::Machine& machine : machines)
    table.row({machine.id, machine.label,
               std::string(machine_state_name(machine.state)) + canary_text(machine),
               machine.seen_us == 0 ? "never" : iso_time(machine.seen_us), machine.agent, machine.manifest,
               fmt::format("{}", machine.accepted), fmt::format("{}", machine.duplicate),
               fmt::format("{}", machine.refused), machine.last_refusal.substr(0, 80)});
  print_out(table.text());
  return exit_ok;
}

// ---- canary, retire, prune ----

Result<int> run_retire(const Arguments& arguments) {
  FURLONG_TRY(const auto store, open_there(arguments, false));
  const std::string& id = arguments.positionals[1];
  FURLONG_CHECK(known_machine(*store, id));
  FURLONG_CHECK(store->retire(id));
  if (arguments.flag("--json"))
    print_out(
        json_pretty(Json{{"schema", 1}, {"kind", "hub-retire"}, {"machine", id}, {"state", "retired"}}));
  else
    print_out(fmt::format("{} is retired: nothing is taken from it any more; its races stay\n", id));
  return exit_ok;
}

Result<int> run_canary(const Arguments& arguments) {
  const std::string &id = arguments.positionals[1], &to = arguments.positionals[2];
  if (to != "on" && to != "off")
    return fail(Code::invalid, "'{}': on or off is wanted after the machine", one_line(to.substr(0, 40)));
  const bool canary = to == "on";
  FURLONG_TRY(const auto store, open_there(arguments, false));
  FURLONG_CHECK(known_machine(*store, id));
  FURLONG_CHECK(store->set_canary(id, canary));
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1}, {"kind", "hub-canary"}, {"machine", id}, {"canary", canary}}));
  else
    print_out(fmt::format("{} is {}: its races {} stop a manifest\n", id, canary ? "a canary" : "no canary",
                          canary ? "may" : "cannot"));
  return exit_ok;
}

Result<int> run_prune(const Arguments& arguments) {
  if (!arguments.given("--keep-days"))
    return fail(Code::invalid, "--keep-days N is missing: what is younger than N days stays");
  // An hour at least: 0 means "forget nothing" to the hub, and would be all of it here.
  FURLONG_TRY(const double days, arguments.number("--keep-days", 0, 1.0 / 24, 36'600));
  FURLONG_TRY(const auto store, open_there(arguments, false));
  const std::int64_t before_us =
      system_clock().wall_us() - static_cast<std::int64_t>(days * static_cast<double>(day_us));
  FURLONG_TRY(const std::uint64_t gone, store->prune(before_us));
  FURLONG_TRY(const fleet::StoreTotals totals, store->totals());
  if (arguments.flag("--json"))
    print_out(json_pretty(Json{{"schema", 1},
                               {"kind", "hub-prune"},
                               {"before", iso_time(before_us)},
                               {"forgotten", gone},
                               {"races", totals.races}}));
  else
    print_out(fmt::format("{} races from before {} are forgotten, {} are left\n", gone, iso_time(before_us),
                          totals.races));
  return exit_ok;
}

PositionalSpec store_positional() {
  return {.name = "STORE", .help = "sqlite:FILE or postgresql://HOST/DATABASE."};
}

}  // namespace

CommandSpec hub_token_command() {
  return {.name = "hub token",
          .summary = "Make a token that enrols one machine with the hub, once.",
          .description =
              "The token goes to standard output, and nowhere else: the store keeps only its hash. The agent "
              "takes it "
              "as enrol_token or enrol_token_file. The store is made when it is not there.\n"
              "--replaces is for a machine that lost its key: when the token is used, the old one is "
              "retired. The label is "
              "taken over where --label says none; that it was a canary is not.",
          .positionals = {store_positional()},
          .options =
              {{.name = "--label",
                .value_name = "L",
                .help = "What the machine is called in lists. Default: as the one that it replaces."},
               {.name = "--canary", .value_name = "", .help = "New manifests are judged by its races."},
               {.name = "--replaces",
                .value_name = "MACHINE",
                .help = "Retire this machine (furlong hub machines) when the token is used."},
               {.name = "--expires-days", .value_name = "N", .help = "How long it is good for. Default: 7."},
               {.name = "--json", .value_name = "", .help = "Token and terms as JSON."}},
          .examples = {{"furlong hub token sqlite:hub.sqlite --label rack-7 > rack-7.token", ""},
                       {"furlong hub token sqlite:hub.sqlite --replaces 7dd9d66144961473", ""}},
          .run = run_token};
}

CommandSpec hub_machines_command() {
  return {.name = "hub machines",
          .summary = "List the machines of a fleet's store: what they follow, what they sent.",
          .description = "",
          .positionals = {store_positional()},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong hub machines sqlite:hub.sqlite", ""}},
          .run = run_machines};
}

CommandSpec hub_canary_command() {
  return {
      .name = "hub canary",
      .summary = "Judge new manifests by a machine's races, or no more.",
      .description =
          "The hub signs a stop when its canaries get slower (furlong hub --stop-key). That counts for "
          "machines whose token said so (furlong hub token --canary) or that were named here, and not for "
          "those that only call themselves canaries. The machine itself takes a new manifest early when "
          "its own configuration says so.",
      .positionals = {store_positional(),
                      {.name = "MACHINE", .help = "Its id.", .complete = ""},
                      {.name = "STATE", .help = "on or off.", .choices = {"on", "off"}, .complete = ""}},
      .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
      .examples = {{"furlong hub canary sqlite:hub.sqlite 7dd9d66144961473 on", ""}},
      .run = run_canary};
}

CommandSpec hub_retire_command() {
  return {.name = "hub retire",
          .summary = "Take nothing from a machine any more; its races stay and count.",
          .description =
              "For machines that are gone, lost their key, or were cloned. A retired key cannot be enrolled "
              "again: the machine takes a new key and a new token.",
          .positionals = {store_positional(), {.name = "MACHINE", .help = "Its id.", .complete = ""}},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong hub retire sqlite:hub.sqlite 7dd9d66144961473", ""}},
          .run = run_retire};
}

CommandSpec hub_prune_command() {
  return {.name = "hub prune",
          .summary = "Forget old races of a fleet's store, and the batches that only they needed.",
          .description =
              "In steps, so that a hub that works on the store waits for none of them long. A file of "
              "SQLite keeps its size and fills the room again; furlong hub backup makes a small one.",
          .positionals = {store_positional()},
          .options = {{.name = "--keep-days",
                       .value_name = "N",
                       .help = "Keep races of the last N days by their own clock; an hour (1/24) at least. "
                               "Required."},
                      {.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong hub prune sqlite:hub.sqlite --keep-days 365", ""}},
          .run = run_prune};
}

}  // namespace furlong::app
