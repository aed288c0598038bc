#include "apps/furlong/backends.h"
#include "apps/furlong/ceilings.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
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

std::string ceilings_text(const device::Ceilings& ceilings, const std::string& address) {
  Table table;
  table.column("ceiling");
  table.column("memory", Table::Align::right);
  table.column("rate", Table::Align::right);
  table.column("fastest with");
  for (const device::CeilingRate& rate : ceilings.rates)
    table.row({std::string(device::ceiling_words(rate.kind)), rate.bytes > 0 ? human_bytes(rate.bytes) : "",
               ceiling_rate_text(rate.kind, rate.rate), rate.how});
  std::string out;
  for (const device::LeftOut& one : ceilings.left_out)
    out += fmt::format("\nnot measured: {}: {}\n", device::ceiling_words(one.kind), one.why);
  return fmt::format("{} {}, driver {}: measured {}\n\n{}{}", address, ceilings.label, ceilings.driver,
                     ceilings.measured, table.text(), out);
}

Result<int> run_ceilings(const Arguments& arguments, const device::Registry& registry) {
  FURLONG_TRY(const auto opened, open_device(registry, arguments.value("--device", "auto")));
  const std::string address = opened->facts().address();
  std::optional<device::Ceilings> ceilings;
  if (!arguments.flag("--again")) ceilings = kept_ceilings(opened->facts());
  if (!ceilings) {
    const std::stop_token stop = stop_on_interrupt();
    auto measured = measure_and_keep(*opened, stop);
    if (!measured && stop.stop_requested()) {
      print_err("furlong devices: stopped\n");
      return 128 + interrupt_signal();
    }
    if (!measured) return measured.error();
    ceilings = *std::move(measured);
  }
  if (arguments.flag("--json")) {
    Json document = device::to_json(*ceilings);
    document["device"] = address;
    print_out(json_pretty(document));
  } else {
    print_out(ceilings_text(*ceilings, address));
  }
  return exit_ok;
}

/// What keeps a race off the devices that are listed.
std::vector<device::Finding> problems_of(device::Driver& driver) {
  std::vector<device::Finding> problems = driver.findings();
  std::erase_if(problems,
                [](const device::Finding& each) { return each.level != device::Finding::Level::problem; });
  return problems;
}

Result<int> run(const Arguments& arguments) {
  device::Registry registry;
  add_backends(registry);
  if (arguments.flag("--ceilings")) return run_ceilings(arguments, registry);
  for (const char* option : {"--device", "--again"})
    if (arguments.given(option)) return fail(Code::invalid, "{} goes with --ceilings", option);
  Json devices = Json::array();
  Json absent = Json::object();
  Json mends = Json::object();
  Table table;
  for (const char* heading : {"device", "label", "arch", "units", "memory", "languages", "driver", "silicon"})
    table.column(heading);
  std::string absent_text;
  Json problems = Json::array();
  std::string problems_text;
  std::string addresses;
  for (const auto& listed : registry.list()) {
    if (!listed.devices) {
      if (listed.backend == "null" && !arguments.flag("--all")) continue;  // a template, missed by nobody
      absent[listed.backend] = listed.devices.error().text();
      absent_text += fmt::format("{}: {}\n", listed.backend, listed.devices.error().text());
      const std::string mend = absent_mend(*registry.find(listed.backend));
      if (mend.empty()) continue;
      mends[listed.backend] = mend;
      absent_text += fmt::format("  to do: {}\n", mend);
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
    if (arguments.flag("--addresses")) continue;
    for (const device::Finding& problem : problems_of(*registry.find(listed.backend))) {
      problems.push_back(Json{{"what", problem.what}, {"finding", problem.finding}, {"to_do", problem.mend}});
      mends[problem.what] = problem.mend;
      problems_text += fmt::format("{}: {}\n  to do: {}\n", problem.what, problem.finding, problem.mend);
    }
  }
  if (arguments.flag("--addresses")) {
    print_out(addresses);
  } else if (arguments.flag("--json")) {
    print_out(json_pretty(Json{
        {"schema", 1}, {"devices", devices}, {"absent", absent}, {"to_do", mends}, {"problems", problems}}));
  } else {
    print_out(table.text());
    if (!problems_text.empty()) print_out("\nproblems:\n" + problems_text);
    if (!absent_text.empty()) print_out("\nnot here:\n" + absent_text);
  }
  return table.rows() == 0 ? exit_no_device : exit_ok;
}

}  // namespace

CommandSpec devices_command() {
  return {
      .name = "devices",
      .summary = "List the devices that a race can run on, and what is missing for the others.",
      .description =
          "A device's address (opencl:0) is what --device takes. A card is known by its silicon hash, "
          "not by its "
          "name: a driver that renames it does not lose its tuning.\n"
          "--ceilings measures what a device can do at best (stream reads and copies, random loads, "
          "arithmetic): seconds on a card, up to a minute or so on a CPU. Once measured they are kept for "
          "the card "
          "and driver, and each race then says which share of them its variants reach. Nothing else should "
          "run on the device meanwhile.",
      .positionals = {},
      .options = {{.name = "--all", .value_name = "", .help = "The simulated devices too."},
                  {.name = "--addresses", .value_name = "", .help = "Only the addresses, one a line."},
                  {.name = "--ceilings",
                   .value_name = "",
                   .help = "What the device can do at best: kept figures, or measured now."},
                  {.name = "--device",
                   .value_name = "D",
                   .help = "With --ceilings: of which device. Default: the best device here.",
                   .complete = "device"},
                  {.name = "--again",
                   .value_name = "",
                   .help = "With --ceilings: measure even if there are kept figures."},
                  {.name = "--json", .value_name = "", .help = "As JSON."}},
      .examples = {{"furlong devices", ""},
                   {"furlong devices --json", ""},
                   {"furlong devices --ceilings --device opencl:0", ""}},
      .run = run};
}

}  // namespace furlong::app
