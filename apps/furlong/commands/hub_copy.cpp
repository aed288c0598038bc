#include <algorithm>
#include <filesystem>

#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/stores.h"
#include "furlong/base/json.h"
#include "furlong/fleet/store/copy.h"

namespace furlong::app {
namespace {

fleet::CopyProgress shown_by(RecordsProgress& line) {
  return [&line](const fleet::CopyCounts& counts) {
    const std::uint64_t done = counts.batches + counts.there;
    line.show(fmt::format("batch {} of {}, {}", done, counts.of_batches, count_text(counts.races, "race")),
              static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(1, counts.of_batches)));
  };
}

Result<int> run_copy(const Arguments& arguments) {
  const std::string &from_url = arguments.positionals[0], &to_url = arguments.positionals[1];
  FURLONG_TRY(const auto from, fleet::open_store(store_kinds(), from_url, {.create = false}));
  FURLONG_TRY(const auto to, fleet::open_store(store_kinds(), to_url));
  RecordsProgress line(arguments.flag("--json"));
  FURLONG_TRY(const fleet::CopyCounts counts, fleet::copy_store(*from, *to, shown_by(line)));
  line.clear();
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"kind", "hub-copy"},
                               {"machines", counts.machines},
                               {"tokens", counts.tokens},
                               {"batches", counts.batches},
                               {"races", counts.races},
                               {"there", counts.there}}));
    return exit_ok;
  }
  print_out(fmt::format(
      "{} of {}, {} and {} copied; batches that were there already: {}\n", count_text(counts.races, "race"),
      counts.batches == 1 ? "1 batch" : fmt::format("{} batches", counts.batches),
      count_text(counts.machines, "machine"), count_text(counts.tokens, "token"), counts.there));
  return exit_ok;
}

Result<int> run_backup(const Arguments& arguments) {
  FURLONG_TRY(const auto from, fleet::open_store(store_kinds(), arguments.positionals[0], {.create = false}));
  std::string file = arguments.positionals[1];
  if (file.starts_with("sqlite:")) file = file.substr(std::string_view("sqlite:").size());
  if (file.empty() || file.find("://") != std::string::npos)
    return fail(Code::invalid, "'{}' is no file: a backup is one, and furlong hub copy fills another store",
                arguments.positionals[1]);
  if (const auto folder = std::filesystem::absolute(file).parent_path();
      !std::filesystem::is_directory(folder))
    return fail(Code::invalid, "{}: there is no such folder", folder.string());
  const fleet::OpenFile open_file = [](const std::filesystem::path& path) {
    return fleet::open_store(store_kinds(), "sqlite:" + path.string());
  };
  RecordsProgress line(arguments.flag("--json"));
  FURLONG_CHECK(fleet::backup_store(*from, file, open_file, shown_by(line)));
  line.clear();
  FURLONG_TRY(const auto made, fleet::open_store(store_kinds(), "sqlite:" + file, {.read_only = true}));
  FURLONG_TRY(const fleet::StoreTotals totals, made->totals());
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"kind", "hub-backup"},
                               {"file", file},
                               {"machines", totals.machines},
                               {"batches", totals.batches},
                               {"races", totals.races},
                               {"bytes", totals.bytes}}));
    return exit_ok;
  }
  print_out(fmt::format("{}: {}, {}\n", file, count_text(totals.races, "race"),
                        count_text(totals.machines, "machine")));
  return exit_ok;
}

}  // namespace

CommandSpec hub_copy_command() {
  return {
      .name = "hub copy",
      .summary = "Copy a fleet's store into another, also of another kind.",
      .description =
          "Machines, tokens and batches with their exact signed bytes; races are decoded anew, and what FROM "
          "has "
          "replaced or forgotten stays so. What TO held before stays: a machine that it has retired is not "
          "put "
          "back, nor a token that was used. The hub may go on meanwhile; what comes "
          "late is brought by running it again, as is the rest of a copy that was broken off: batches that "
          "TO "
          "has are skipped.\n"
          "To move a hub: copy, stop the hub, copy again, start it with the new store.",
      .positionals = {{.name = "FROM", .help = "sqlite:FILE or postgresql://HOST/DATABASE."},
                      {.name = "TO", .help = "Likewise; made when it is not there (the database must be)."}},
      .options = {{.name = "--json", .value_name = "", .help = "What was copied as JSON."}},
      .examples = {{"furlong hub copy sqlite:hub.sqlite postgresql://hub@db.example/fleet", ""},
                   {"furlong hub copy postgresql://hub@db.example/fleet sqlite:hub.sqlite", ""}},
      .run = run_copy};
}

CommandSpec hub_backup_command() {
  return {
      .name = "hub backup",
      .summary = "Write a fleet's store into one new file while the hub works.",
      .description =
          "A store of SQLite gives one moment of itself; of another kind a copy is made. FILE is a store of "
          "SQLite; it has its name only when it is complete and on the disk, and replaces nothing.",
      .positionals = {{.name = "STORE", .help = "sqlite:FILE or postgresql://HOST/DATABASE."},
                      {.name = "FILE", .help = "What is made."}},
      .options = {{.name = "--json", .value_name = "", .help = "What is in it as JSON."}},
      .examples = {{"furlong hub backup sqlite:hub.sqlite /backup/hub-2026-03-01.sqlite", ""}},
      .run = run_backup};
}

}  // namespace furlong::app
