#include "apps/furlong/commands.h"
#include "apps/furlong/fleet_records.h"
#include "apps/furlong/outputs.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/stream.h"
#include "furlong/fleet/exchange/csv.h"

namespace furlong::app {
namespace {

/// A file that appears when it is whole, or standard output.
class Output {
 public:
  Status open(const std::string& name) {
    if (name == "-") return {};
    FURLONG_TRY(file_, FileWriter::open(name));
    return {};
  }
  Status write(std::string_view text) {
    if (file_) return file_->write(text);
    print_out(text);
    return {};
  }
  Status commit() { return file_ ? file_->commit() : Status(); }

 private:
  std::optional<FileWriter> file_;
};

Result<int> run(const Arguments& arguments) {
  const std::stop_token stop = stop_on_interrupt();
  FURLONG_TRY(const fleet::ExportFilter filter, export_filter(arguments));
  const std::string name = arguments.value("--out", "-");
  const bool csv = arguments.value("--format", name.ends_with(".csv") ? "csv" : "jsonl") == "csv";
  FURLONG_CHECK(can_write_outputs(arguments, {"--out"}));
  FURLONG_TRY(const auto store, open_store(arguments, {.create = false, .read_only = true}));
  // A name that nobody has would make an empty file.
  FURLONG_CHECK(filed_machine(*store, filter.machine));
  FURLONG_CHECK(check_filter_names(*store, filter));
  FURLONG_TRY(const fleet::StoreTotals totals, store->totals());
  Output output;
  FURLONG_CHECK(output.open(name));
  if (csv) FURLONG_CHECK(output.write(fleet::csv_head()));
  std::uint64_t records = 0;
  RecordsProgress progress(name == "-");
  const auto write = [&](std::string_view line) -> Result<bool> {
    if (csv) {
      FURLONG_TRY(const auto record, record::parse_record(line, "a stored record"));
      FURLONG_CHECK(output.write(fleet::csv_rows(record)));
    } else {
      FURLONG_CHECK(output.write(line));
      FURLONG_CHECK(output.write("\n"));
    }
    ++records;
    progress.show(
        count_text(records, "record"),
        static_cast<double>(records) / static_cast<double>(std::max<std::uint64_t>(1, totals.races)));
    return !stop.stop_requested();
  };
  FURLONG_CHECK(fleet::export_records(*store, filter, write));
  progress.clear();
  if (stop.stop_requested()) {
    print_err("furlong fleet export: interrupted" + std::string(name == "-" ? "" : "; nothing was written") +
              "\n");
    return 128 + interrupt_signal();
  }
  FURLONG_CHECK(output.commit());
  if (name != "-") print_err(fmt::format("{} in {}\n", count_text(records, "record"), name));
  return exit_ok;
}

}  // namespace

CommandSpec fleet_export_command() {
  std::vector<OptionSpec> options{store_option("Whose records."),
                                  {.name = "--out",
                                   .value_name = "FILE",
                                   .help = "Where they go. Default: -, standard output.",
                                   .complete = "file"},
                                  {.name = "--format",
                                   .value_name = "F",
                                   .help = "Default: by the file's name, else jsonl.",
                                   .choices = {"jsonl", "csv"}}};
  for (OptionSpec& each : filter_options()) options.push_back(std::move(each));
  return {.name = "fleet export",
          .summary = "Write the race records of a fleet's store to a file: JSON lines or CSV.",
          .description =
              "JSON lines are as the machines wrote them; a table has one row a variant. Ordered by time, "
              "then id. "
              "furlong fleet import takes both back, and what is exported of that is the same bytes; "
              "docs/formats/fleet-exchange.md. The file appears when it is whole.",
          .positionals = {},
          .options = std::move(options),
          .examples =
              {{"furlong fleet export --store sqlite:hub.sqlite --out records.jsonl", ""},
               {"furlong fleet export --store sqlite:hub.sqlite --card NVIDIA_H200 --since 2026-03-01 --out "
                "march.csv",
                ""}},
          .run = run};
}

}  // namespace furlong::app
