#include "apps/furlong/backends.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

std::string languages_text(const device::Facts& facts) {
  std::vector<std::string> words;
  for (const auto language : facts.languages) words.emplace_back(device::language_name(language));
  return join(words, " ");
}

Json to_json(const device::Facts& facts) {
  std::vector<std::string> languages;
  for (const auto language : facts.languages) languages.emplace_back(device::language_name(language));
  return Json{{"address", facts.address()},
              {"label", facts.label},
              {"silicon",
               {{"hash", facts.silicon.hash()},
                {"vendor", facts.silicon.vendor},
                {"arch", facts.silicon.arch},
                {"multiprocessors", facts.silicon.multiprocessors},
                {"memory_bytes", facts.silicon.memory_bytes},
                {"memory_clock_mhz", facts.silicon.memory_clock_mhz}}},
              {"driver", facts.driver},
              {"compiler", facts.compiler},
              {"uuid", facts.uuid},
              {"languages", languages},
              {"max_threads_per_block", facts.max_threads_per_block},
              {"max_shared_bytes", facts.max_shared_bytes},
              {"max_buffer_bytes", facts.max_buffer_bytes},
              {"warp", facts.warp},
              {"runs_on_host_cpu", facts.runs_on_host_cpu}};
}

Result<int> run(const Arguments& arguments) {
  device::Registry registry;
  add_backends(registry);
  Json devices = Json::array();
  Json absent = Json::object();
  Table table;
  for (const char* heading : {"device", "label", "arch", "units", "memory", "languages", "driver", "silicon"})
    table.column(heading);
  std::string absent_text;
  std::string addresses;
  for (const auto& listed : registry.list()) {
    if (!listed.devices) {
      if (listed.backend == "null" && !arguments.flag("--all")) continue;  // a template, missed by nobody
      absent[listed.backend] = listed.devices.error().text();
      absent_text += fmt::format("{}: {}\n", listed.backend, listed.devices.error().text());
      continue;
    }
    for (const device::Facts& facts : *listed.devices) {
      if (facts.virtual_time && !arguments.flag("--all")) continue;
      addresses += facts.address() + "\n";
      devices.push_back(to_json(facts));
      table.row({facts.address(), facts.label, facts.silicon.arch,
                 std::to_string(facts.silicon.multiprocessors), human_bytes(facts.silicon.memory_bytes),
                 languages_text(facts), facts.driver, facts.silicon.hash()});
    }
  }
  if (arguments.flag("--addresses")) {
    print_out(addresses);
  } else if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1}, {"devices", devices}, {"absent", absent}}));
  } else {
    print_out(table.text());
    if (!absent_text.empty()) print_out("\nnot here:\n" + absent_text);
  }
  return table.rows() == 0 ? exit_no_device : exit_ok;
}

}  // namespace

CommandSpec devices_command() {
  return {.name = "devices",
          .summary = "List the devices that a race can run on, and what is missing for the others.",
          .description =
              "A device's address (opencl:0) is what --device takes. A card is known by its silicon hash, "
              "not by its "
              "name: a driver that renames it does not lose its tuning.",
          .positionals = {},
          .options = {{.name = "--all", .value_name = "", .help = "The simulated devices too."},
                      {.name = "--addresses", .value_name = "", .help = "Only the addresses, one a line."},
                      {.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong devices", ""}, {"furlong devices --json", ""}},
          .run = run};
}

}  // namespace furlong::app
