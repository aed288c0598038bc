#include "apps/furlong/fleet_evidence.h"

#include "apps/furlong/fleet_records.h"
#include "apps/furlong/session.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

constexpr std::size_t largest_tuning = 8u << 20;

/// "CARD=VARIANT", "CARD=PROGRAM/VARIANT": names of programs and variants have no slash.
Result<fleet::Pin> pin_argument(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return fail(Code::invalid, "--pin {}: CARD=VARIANT or CARD=PROGRAM/VARIANT is wanted", one_line(text));
  fleet::Pin pin{.card = text.substr(0, equals), .variant = text.substr(equals + 1), .program = {}};
  if (const std::size_t slash = pin.variant.find('/'); slash != std::string::npos) {
    pin.program = pin.variant.substr(0, slash);
    pin.variant.erase(0, slash + 1);
  }
  return pin;
}

}  // namespace

Result<fleet::OpenStore> evidence_store(const Arguments& arguments) {
  // A store that is not there is the user's to mend: found out before the work begins.
  const auto open = [arguments] { return open_store(arguments, {.create = false, .read_only = true}); };
  FURLONG_CHECK(open());
  return fleet::OpenStore(open);
}

Result<std::optional<std::int64_t>> until_option(const Arguments& arguments) {
  if (!arguments.given("--until")) return std::nullopt;
  const auto time = fleet::parse_time_argument(arguments.value("--until"));
  if (!time) return fail(Code::invalid, "--until: {}", time.error().text());
  return *time;
}

Result<fleet::AggregateOptions> aggregate_options(const Arguments& arguments) {
  fleet::AggregateOptions options;
  FURLONG_TRY(options.window_days, arguments.number("--window-days", 7, 0.001, 36500));
  FURLONG_TRY(options.until_us, until_option(arguments));
  FURLONG_TRY(const std::int64_t samples, arguments.integer("--min-samples", 3, 1, 1'000'000));
  options.min_samples = static_cast<int>(samples);
  const std::string by = arguments.value("--by", "rate");
  options.by = by == "mhw" || by == "energy" ? fleet::By::energy : fleet::By::rate;
  if (arguments.value("--rank", "gain") == "rate") options.rank = fleet::Rank::rate;
  for (const std::string& text : arguments.values("--pin")) {
    FURLONG_TRY(fleet::Pin pin, pin_argument(text));
    options.pins.push_back(std::move(pin));
  }
  options.unpin = arguments.values("--unpin");
  if (arguments.given("--previous")) {
    const std::string file = arguments.value("--previous");
    if (!system_files().exists(file))
      return fail(Code::invalid, "--previous {}: there is no such file; the first time leave --previous out",
                  file);
    FURLONG_TRY(const std::string text, as_input(system_files().read(file, largest_tuning)));
    auto previous = record::parse_tuning(text, file);
    if (!previous)
      return Error(std::move(previous).error())
          .with("--previous wants a tuning, as furlong fleet tuning --write makes it");
    options.previous = *std::move(previous);
  }
  return options;
}

OptionSpec evidence_store_option() { return store_option("The hub's store; it is only read."); }

OptionSpec until_option_spec() {
  return {.name = "--until",
          .value_name = "T",
          .help = "End of the window, such as 2026-03-01T12:00:00Z. Default: just after the newest race."};
}

std::vector<OptionSpec> aggregate_option_specs() {
  return {
      evidence_store_option(),
      {.name = "--window-days", .value_name = "N", .help = "Races of so many days count. Default 7."},
      until_option_spec(),
      {.name = "--min-samples", .value_name = "N", .help = "Samples that a variant needs to win. Default 3."},
      {.name = "--by",
       .value_name = "WHAT",
       .help = "What wins: the rate, or work per joule (mhw is energy, mhs is rate). Default rate.",
       .choices = {"rate", "energy", "mhs", "mhw"}},
      {.name = "--rank",
       .value_name = "HOW",
       .help = "Rank by the gain within races, or by plain median rates. Default gain.",
       .choices = {"gain", "rate"}},
      {.name = "--pin",
       .value_name = "CARD=VARIANT",
       .help = "The card uses this variant and races seldom (CARD=PROGRAM/VARIANT: in that program "
               "alone). The card by key, label, alias or silicon hash.",
       .repeatable = true},
      {.name = "--unpin",
       .value_name = "CARD",
       .help = "What --previous pins on this card does not hold.",
       .repeatable = true},
      {.name = "--previous",
       .value_name = "FILE",
       .help = "The tuning before: what it pins stays until the races speak against it.",
       .complete = "file"},
      {.name = "--json", .value_name = "", .help = "As JSON (docs/formats/hub-api.md)."}};
}

}  // namespace furlong::app
