#include "furlong/fleet/hub/audits.h"

#include <algorithm>
#include <set>

#include "furlong/audit/audit.h"
#include "furlong/base/json.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

audit::Options audit_options(const std::vector<ShippedLattice>& all, const ShippedLattice& one) {
  audit::Options options;
  options.program = one.program;
  options.language = one.language;
  options.source = one.source;
  // A record that does not tell its language can only be of the one that there is.
  options.unstated_language = std::ranges::count(all, one.program, &ShippedLattice::program) == 1;
  return options;
}

Json list_row(const ShippedLattice& shipped, const audit::Report& report) {
  std::map<std::string, int> verdicts;
  for (const audit::KnobReport& knob : report.knobs)
    ++verdicts[std::string(audit::verdict_name(knob.verdict))];
  Json counts = Json::object();
  for (const auto& [verdict, count] : verdicts) counts[verdict] = count;
  return Json{{"program", shipped.program},
              {"language", shipped.language},
              {"knobs", shipped.lattice.knobs.size()},
              {"races", report.used},
              {"verdicts", std::move(counts)}};
}

}  // namespace

struct Audits::Records {
  std::vector<record::RaceRecord> records;
  bool cut = false;  ///< there are more in the window
};

Audits::Audits(std::vector<ShippedLattice> lattices, OpenStore open, Clock& clock,
               std::function<void(LogLevel, std::string_view)> say, Options options)
    : lattices_(std::move(lattices)),
      open_(std::move(open)),
      clock_(clock),
      say_(std::move(say)),
      options_(options) {
  auto none = make(nullptr, {});
  latest_ = std::make_shared<Made>(none ? *std::move(none) : Made{});
}

std::shared_ptr<const Audits::Made> Audits::latest() const {
  const std::scoped_lock lock(mutex_);
  return latest_;
}

Result<Audits::Records> Audits::read(Store& store, const std::string& program, const Window& window) const {
  RaceFilter filter{.program = program};
  filter.window = window;
  filter.limit = options_.most_races + 1;
  Records read;
  std::size_t bytes = 0;
  FURLONG_CHECK(store.lines(filter, [&](std::string_view line) {
    bytes += line.size();
    read.cut = read.records.size() == options_.most_races || bytes > options_.most_bytes;
    if (read.cut) return false;
    // It was read at intake; what cannot be read now is no evidence.
    if (auto record = record::parse_record(line, "stored record")) read.records.push_back(*std::move(record));
    return true;
  }));
  return read;
}

Result<Audits::Made> Audits::make(Store* store, const Window& window) const {
  Made made;
  std::set<std::string> programs;
  for (const ShippedLattice& shipped : lattices_) programs.insert(shipped.program);
  Json list = Json::array();
  for (const std::string& program : programs) {
    Records records;
    if (store != nullptr) {
      FURLONG_TRY(records, read(*store, program, window));
    }
    Json editions = Json::array();
    for (const ShippedLattice& shipped : lattices_) {
      if (shipped.program != program) continue;
      const audit::Report report =
          audit::audit(shipped.lattice, records.records, audit_options(lattices_, shipped));
      editions.push_back(
          Json{{"language", shipped.language}, {"report", audit::to_json(shipped.lattice, report)}});
      list.push_back(list_row(shipped, report));
    }
    made.programs.emplace(program, make_document(Json{{"schema", 1},
                                                      {"program", program},
                                                      {"races", records.records.size()},
                                                      {"most_races", options_.most_races},
                                                      {"cut", records.cut},
                                                      {"editions", std::move(editions)}}));
  }
  made.list = make_document(Json{{"schema", 1}, {"programs", std::move(list)}});
  return made;
}

void Audits::refresh(const Learned& learned) {
  const std::int64_t begin_ns = clock_.now_ns();
  if (lattices_.empty() || (made_once_ && (learned.change == change_ || begin_ns < next_ns_))) return;
  const auto made = [&]() -> Result<Made> {
    if (store_ == nullptr) {
      FURLONG_TRY(store_, open_());
    }
    return make(store_.get(), learned.window);
  }();
  const std::int64_t took_ns = clock_.now_ns() - begin_ns;
  next_ns_ = begin_ns + std::max(static_cast<std::int64_t>(options_.every_s * 1e9), 4 * took_ns);
  const std::string problem = made ? "" : made.error().text();
  if (problem != std::exchange(told_, problem) && !problem.empty())
    say_(LogLevel::error, fmt::format("audit of the knobs: {}; the last one goes on being served", problem));
  if (!made) return;
  made_once_ = true;
  change_ = learned.change;
  const std::scoped_lock lock(mutex_);
  latest_ = std::make_shared<Made>(*made);
}

}  // namespace furlong::fleet
