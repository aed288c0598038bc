#include "apps/furlong/fleet_records.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "apps/furlong/stores.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

constexpr std::int64_t draw_every_ns = 200'000'000;

/// What the cards of a store are called. One kind of card has few names: the first races of each subject have
/// them, and the others need not be read.
Result<std::set<std::string>> card_names(fleet::Store& store, const std::vector<fleet::SubjectRow>& subjects,
                                         const std::vector<std::string>& words) {
  constexpr int most_races = 2000;
  std::set<std::string> names;
  for (const fleet::SubjectRow& subject : subjects) {
    int races = 0;
    FURLONG_CHECK(store.scan(subject.number, {.from_us = INT64_MIN}, [&](const fleet::RaceRow& race) {
      if (race.label < words.size()) names.insert(words[race.label]);
      return ++races < most_races;
    }));
  }
  return names;
}

}  // namespace

OptionSpec store_option(std::string help) {
  return {.name = "--store",
          .value_name = "URL",
          .help = std::move(help) + " sqlite:FILE or postgresql://HOST/DATABASE. Required."};
}

Result<std::unique_ptr<fleet::Store>> open_store(const Arguments& arguments,
                                                 const fleet::StoreKind::Options& options) {
  if (!arguments.given("--store"))
    return fail(Code::invalid, "--store URL is missing: sqlite:FILE or postgresql://HOST/DATABASE");
  return fleet::open_store(store_kinds(), arguments.value("--store"), options);
}

bool is_store_url(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view scheme = text.substr(0, colon);
  return scheme == "postgres" ||
         std::ranges::any_of(store_kinds(), [&](const auto& kind) { return kind.scheme == scheme; });
}

std::vector<OptionSpec> filter_options() {
  return {
      {.name = "--card", .value_name = "C", .help = "Only this card: its label, or the hash of its silicon."},
      {.name = "--program", .value_name = "P", .help = "Only this program."},
      {.name = "--machine",
       .value_name = "M",
       .help = "Only this machine (furlong hub machines STORE). Of imported records: the name."},
      {.name = "--since",
       .value_name = "T",
       .help = "Only from this time on: 2026-03-01 or 2026-03-01T12:00:00Z."},
      {.name = "--until", .value_name = "T", .help = "Only before this time."}};
}

Result<fleet::ExportFilter> export_filter(const Arguments& arguments) {
  fleet::ExportFilter filter{.card = arguments.value("--card"),
                             .program = arguments.value("--program"),
                             .machine = arguments.value("--machine"),
                             .window = {.from_us = INT64_MIN, .to_us = INT64_MAX}};
  for (const auto& [option, into] : {std::pair<const char*, std::int64_t*>{"--since", &filter.window.from_us},
                                     {"--until", &filter.window.to_us}}) {
    if (!arguments.given(option)) continue;
    const auto time = fleet::parse_time_argument(arguments.value(option));
    if (!time) return fail(Code::invalid, "{}: {}", option, time.error().text());
    *into = *time;
  }
  if (filter.window.from_us >= filter.window.to_us)
    return fail(Code::invalid, "--since {} is not before --until {}", arguments.value("--since"),
                arguments.value("--until"));
  return filter;
}

Result<std::string> filed_machine(fleet::Store& store, const std::string& name) {
  if (name.empty()) return name;
  const std::string imported = "import:" + name;
  for (const std::string& id : {name, imported}) {
    FURLONG_TRY(const auto known, store.machine(id));
    if (known) return id;
  }
  FURLONG_TRY(const std::vector<fleet::Machine> machines, store.machines());
  return fail(Code::invalid, "--machine: the store knows no machine '{}'{}", one_line(name),
              nearest_machine(machines, name));
}

Status check_filter_names(fleet::Store& store, const fleet::ExportFilter& filter) {
  if (filter.card.empty() && filter.program.empty()) return {};
  FURLONG_TRY(const auto subjects, store.subjects());
  const auto none = [](std::string_view what, const std::string& name, const std::set<std::string>& names) {
    return fail(Code::invalid, "no record of {} '{}'{}", what, one_line(name.substr(0, 200)),
                nearest_choices(name, std::vector(names.begin(), names.end())));
  };
  std::set<std::string> programs, hashes;
  for (const fleet::SubjectRow& each : subjects) {
    programs.insert(each.subject.program);
    hashes.insert(each.silicon.hash);
  }
  if (!filter.program.empty() && !programs.contains(filter.program))
    return none("program", filter.program, programs);
  if (filter.card.empty() || hashes.contains(filter.card)) return {};
  FURLONG_TRY(const auto words, store.words());
  if (std::ranges::find(words, filter.card) != words.end()) return {};
  FURLONG_TRY(const auto names, card_names(store, subjects, words));
  return none("card", filter.card, names);
}

std::string nearest_machine(const std::vector<fleet::Machine>& machines, const std::string& name) {
  const auto hexadecimal = [](std::string_view text) {
    return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  };
  std::vector<std::string> called, ids;
  for (const fleet::Machine& machine : machines) {
    if (!machine.label.empty() && machine.label == name) called.push_back(machine.id);
    if (hexadecimal(name) || !hexadecimal(machine.id)) ids.push_back(machine.id);
  }
  if (called.size() == 1)
    return fmt::format(": {} is the label of {}; say that", one_line(name), called.front());
  if (called.size() > 1)
    return fmt::format(
        ": {} is the label of {} machines; say one of {}", one_line(name), called.size(),
        join(called.size() > 4 ? std::vector(called.begin(), called.begin() + 4) : called, ", "));
  // Whatever is far away says nothing: fingerprints are all as unlike each other.
  return did_you_mean(name, ids);
}

RecordsProgress::RecordsProgress(bool quiet)
    : on_(!quiet && isatty(STDERR_FILENO) == 1), begin_ns_(system_clock().now_ns()) {}

RecordsProgress::~RecordsProgress() { clear(); }

void RecordsProgress::show(const std::string& text, double share) {
  if (!on_ || system_clock().now_ns() < next_ns_) return;
  next_ns_ = system_clock().now_ns() + draw_every_ns;
  const double seconds = static_cast<double>(system_clock().now_ns() - begin_ns_) * 1e-9;
  std::string row = text;
  if (share >= 0) row += fmt::format(", {:.0f}%", 100 * share);
  if (share > 0.02 && share < 1 && seconds > 2)
    row += fmt::format(", {:.0f} s left", seconds * (1 - share) / share);
  print_err("\r\033[2K" + row.substr(0, 118));
  drawn_ = true;
}

void RecordsProgress::clear() {
  if (drawn_) print_err("\r\033[2K");
  drawn_ = false;
}

std::string count_text(std::uint64_t count, std::string_view what) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ' ');
  return fmt::format("{} {}{}", digits, what, count == 1 ? "" : "s");
}

}  // namespace furlong::app
