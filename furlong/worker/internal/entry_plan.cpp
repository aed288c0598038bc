#include "furlong/worker/internal/entry_plan.h"

#include <algorithm>

#include "furlong/select/select.h"

namespace furlong::worker {
namespace {

/// Those that the row names first, in its order, then the others.
void order_by(const program::Instance& instance, const record::TuningRow& row, EntryPlan& plan) {
  std::vector<lattice::Point> ordered{plan.points[0]};
  const auto add = [&](const lattice::Point& point) {
    if (std::ranges::find(ordered, point) == ordered.end()) ordered.push_back(point);
  };
  std::vector<std::string> names = row.candidates;
  if (names.empty() && !row.variant.empty()) names.push_back(row.variant);
  for (const std::string& name : names) {
    const auto points = instance.select(name);
    if (!points) {
      plan.notes.push_back(
          fmt::format("the tuning's candidate '{}' is passed over: {}", name, points.error().text()));
      continue;
    }
    for (const lattice::Point& point : *points) {
      // The options say who may race at all.
      if (std::ranges::find(plan.points, point) != plan.points.end()) add(point);
    }
  }
  plan.tuned = ordered.size() > 1;
  for (const lattice::Point& point : plan.points) add(point);
  plan.points = std::move(ordered);
}

}  // namespace

Result<std::optional<record::Tuning>> read_tuning(Files& files, const std::filesystem::path& file) {
  if (file.empty()) return std::optional<record::Tuning>();
  const auto one = [&](const std::filesystem::path& path) -> Result<std::optional<record::Tuning>> {
    auto text = files.read(path, 64u << 20);
    if (!text && text.error().code() == Code::unavailable) return std::optional<record::Tuning>();
    if (!text) return text.error();
    FURLONG_TRY(record::Tuning tuning, record::parse_tuning(*text, path.string()));
    return std::optional(std::move(tuning));
  };
  FURLONG_TRY(std::optional<record::Tuning> tuning, one(file));
  FURLONG_TRY(const std::optional<record::Tuning> over, one(file.parent_path() / "override.json"));
  if (!over) return tuning;
  if (!tuning) tuning.emplace();
  record::apply_override(*tuning, *over);
  return tuning;
}

Result<EntryPlan> plan_entry(const program::Instance& instance, const device::Facts& facts,
                             const record::Tuning* tuning, const EntryRequest& request) {
  EntryPlan plan;
  if (!request.variant.empty()) {
    FURLONG_TRY(plan.points, instance.select(request.variant));
    plan.race = false;
    plan.pinned = true;
    return plan;
  }
  if (request.race == "off") {
    plan.points = {instance.lattice().base()};
    plan.race = false;
    return plan;
  }
  FURLONG_TRY(plan.points, instance.select(request.race));
  if (tuning == nullptr) return plan;
  const record::TuningMatch match = record::find_tuning(*tuning, tuning_query(instance, facts));
  if (!match.note.empty()) plan.notes.push_back("the tuning: " + match.note);
  if (match.row == nullptr) return plan;
  plan.row = match.card->key;
  if (!match.row->program_class.empty()) plan.row += ", " + record::class_text(match.row->program_class);
  if (record::races_now(*match.row, request.prepare)) {
    order_by(instance, *match.row, plan);
    return plan;
  }
  auto pinned = instance.select(match.row->variant);
  if (!pinned) {
    plan.notes.push_back(fmt::format("the tuning pins '{}', which is passed over: {}", match.row->variant,
                                     pinned.error().text()));
    return plan;
  }
  plan.points = *std::move(pinned);
  plan.race = false;
  plan.pinned = true;
  return plan;
}

}  // namespace furlong::worker
