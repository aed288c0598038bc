#include "apps/furlong/commands.h"
#include "apps/furlong/executors.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

std::vector<std::string> makers() {
  std::vector<std::string> names;
  for (const auto& kind : executor_kinds())
    if (kind.make_store) names.push_back(kind.name);
  return names;
}

Result<int> run(const Arguments& arguments) {
  const std::string& name = arguments.positionals[0];
  if (!arguments.given("--out")) return fail(Code::invalid, "shard store: --out STORE is missing");
  const auto kinds = executor_kinds();
  const auto kind =
      std::ranges::find_if(kinds, [&](const auto& k) { return k.name == name && k.make_store; });
  if (kind == kinds.end())
    return fail(Code::invalid, "shard store: no store of the kind '{}' can be made{}; there are {}", name,
                did_you_mean(name, makers()), join(makers(), ", "));
  shard::StoreRequest request;
  request.input = arguments.positionals[1];
  request.out = arguments.value("--out");
  FURLONG_CHECK(distinct_files({{"the input", request.input.string()}, {"--out", request.out.string()}}));
  std::error_code error;
  const bool there = std::filesystem::exists(request.out, error);
  // Another file is not replaced by a slip of the hand, nor a device or a pipe by a regular file.
  if (there && arguments.flag("--replace")) {
    const auto old = shard::Store::open(request.out);
    if (!old && old.error().code() == Code::invalid)
      return fail(Code::invalid, "{} is no store, and --replace replaces stores alone: choose another --out",
                  request.out.string());
  }
  if (there && !arguments.flag("--replace"))
    return fail(Code::invalid, "{} is there already: give --replace, or another --out", request.out.string());
  request.stop = stop_on_interrupt();
  StepLine line(!arguments.flag("--quiet"));
  request.progress = line.progress();
  auto report = kind->make_store(request);
  line.clear();
  if (request.stop.stop_requested()) {
    print_err("furlong shard store: stopped; nothing was written\n");
    return 128 + interrupt_signal();
  }
  if (!report) {
    // An input that is not there is the user's to mend.
    if (report.error().code() == Code::unavailable) return Error(Code::invalid, report.error().text());
    return Error(std::move(report).error());
  }
  if (arguments.flag("--json")) {
    Json json{{"schema", 1},
              {"store", request.out.string()},
              {"executor", kind->name},
              {"units", report->units},
              {"items", report->items},
              {"item_bytes", report->item_bytes}};
    json["notes"] = Json::object();
    for (const auto& [key, value] : report->notes) json["notes"][key] = value;
    print_out(json_pretty(json));
    return exit_ok;
  }
  std::string notes;
  for (const auto& [key, value] : report->notes) notes += fmt::format(", {} {}", key, value);
  print_out(fmt::format("{}: {} units, {} items, {}{}\n", request.out.string(), report->units, report->items,
                        human_bytes(report->item_bytes), notes));
  return exit_ok;
}

}  // namespace

CommandSpec shard_store_command() {
  std::string inputs;
  for (const auto& kind : executor_kinds())
    if (kind.make_store) inputs += fmt::format("\n  {}: {}", kind.name, kind.input);
  return {
      .name = "shard store",
      .summary = "Make a store: the work's items by content, and the units made of them.",
      .description = "A store records which executor its units are for. Kinds, and what each is made of:" +
                     inputs + "\nThe file appears under its name when it is whole.",
      .positionals = {{.name = "KIND", .help = "Whose units they are.", .choices = makers(), .complete = ""},
                      {.name = "INPUT", .help = "What the store is made of."}},
      .options = {{.name = "--out", .value_name = "STORE", .help = "The file to write.", .complete = "file"},
                  {.name = "--replace", .value_name = "", .help = "Replace a store that is there."},
                  {.name = "--quiet", .value_name = "", .help = "No progress line."},
                  {.name = "--json", .value_name = "", .help = "As JSON."}},
      .examples = {{"furlong shard store metamath set.mm --out set.store", ""},
                   {"furlong shard store command build/compile_commands.json --out build.store", ""},
                   {"furlong shard store campaign races.toml --out races.store", ""}},
      .run = run};
}

}  // namespace furlong::app
