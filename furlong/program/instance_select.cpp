// From what a user typed to points: "catalogue", "all", names.
#include <algorithm>
#include <set>

#include "furlong/base/log.h"
#include "furlong/base/text.h"
#include "furlong/lattice/space.h"
#include "furlong/program/instance.h"

namespace furlong::program {
namespace {

constexpr std::uint64_t kMostPoints = 100'000;
constexpr std::uint64_t kSmallSpace = 64;

bool allowed(const lattice::Knob& knob, std::span<const std::string> allow_lossy) {
  return std::find(allow_lossy.begin(), allow_lossy.end(), knob.name) != allow_lossy.end();
}

// The knob whose value in the point is in the set and not allowed, or nullptr.
const lattice::Knob* kept_out(const lattice::Lattice& lattice, const lattice::Point& point,
                              std::span<const std::string> allow_lossy,
                              std::set<std::size_t> lattice::Knob::* which) {
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    const lattice::Knob& knob = lattice.knobs[k];
    if ((knob.*which).contains(point.indices[k]) && !allowed(knob, allow_lossy)) return &knob;
  }
  return nullptr;
}

// The lattice without lossy and restricted values. As constraints, so that the points' indices stay the same.
Result<lattice::Lattice> admitted(const lattice::Lattice& lattice, std::span<const std::string> allow_lossy) {
  lattice::Lattice result = lattice;
  for (const lattice::Knob& knob : lattice.knobs) {
    if (allowed(knob, allow_lossy)) continue;
    std::set<std::size_t> out = knob.lossy;
    out.insert(knob.restricted.begin(), knob.restricted.end());
    for (const std::size_t index : out) {
      FURLONG_TRY(auto expression, lattice::Expression::parse(
                                       fmt::format("{} != {}", knob.name, knob.values[index].literal())));
      result.constraints.push_back(
          {.expression = std::move(expression), .reason = "not admitted by name", .line = 0});
    }
  }
  return result;
}

// Points in the order asked for, none twice.
struct Chosen {
  std::vector<lattice::Point> points;
  std::set<lattice::Point> seen;
  void add(const lattice::Point& point) {
    if (seen.insert(point).second) points.push_back(point);
  }
};

struct Selection {
  const Instance& instance;
  std::span<const std::string> allow_lossy;
  Chosen chosen;

  const lattice::Lattice& lattice() const { return instance.lattice(); }

  Result<lattice::Space> space() const {
    FURLONG_TRY(const lattice::Lattice open, admitted(lattice(), allow_lossy));
    return lattice::Space::build(open, instance.facts());
  }

  Status add_all() {
    FURLONG_TRY(const lattice::Space points, space());
    if (points.count() > kMostPoints)
      return fail(Code::invalid,
                  "\"all\" would be {} variants of program '{}', more than {}: name the variants, or search "
                  "the lattice instead of racing all of it",
                  points.count(), instance.program().name, kMostPoints);
    for (auto cursor = points.begin_cursor(); cursor.valid(); cursor.next()) chosen.add(cursor.point());
    return {};
  }

  Status add_default_catalogue() {
    FURLONG_TRY(const lattice::Space points, space());
    if (points.count() <= kSmallSpace) {
      for (auto cursor = points.begin_cursor(); cursor.valid(); cursor.next()) chosen.add(cursor.point());
      return {};
    }
    for (const lattice::Point& point : points.neighbours(lattice().base())) chosen.add(point);
    return {};
  }

  Status add_catalogue() {
    if (lattice().catalogue.empty()) return add_default_catalogue();
    FURLONG_TRY(const auto points, lattice::catalogue_points(lattice()));
    std::size_t lossy = 0, restricted = 0;
    const lattice::Knob *lossy_knob = nullptr, *restricted_knob = nullptr;
    for (const lattice::Point& point : points) {
      if (const auto* knob = kept_out(lattice(), point, allow_lossy, &lattice::Knob::lossy)) {
        ++lossy, lossy_knob = knob;
        continue;
      }
      if (const auto* knob = kept_out(lattice(), point, allow_lossy, &lattice::Knob::restricted)) {
        ++restricted, restricted_knob = knob;
        continue;
      }
      FURLONG_TRY(const std::string why, lattice().why_invalid(point, instance.facts()));
      if (why.empty())
        chosen.add(point);
      else
        log_info("variant {} of {} is left out: {}", lattice::variant_name(lattice(), point),
                 instance.program().name, why);
    }
    if (lossy > 0)
      log_warning(
          "{} of {} variants of {} are left out, since they lower precision: admit them with --allow-lossy "
          "{}",
          lossy, points.size(), instance.program().name, lossy_knob->name);
    if (restricted > 0)
      log_warning(
          "{} of {} variants of {} are left out, since they are right for some inputs only ('{}'): name "
          "those that "
          "are right for yours with --variants",
          restricted, points.size(), instance.program().name, restricted_knob->name);
    return {};
  }

  // The lattice says which of its tags are near; a whole word may also be meant for one that is no tag, or
  // for another language's variant.
  Error unknown(std::string_view name, Error error) const {
    static const std::vector<std::string> words = {"base", "catalogue", "all"};
    if (const std::string guess = did_you_mean(name, words); !guess.empty())
      return fail(Code::invalid, "'{}' is no variant of program '{}'{}", name, instance.program().name,
                  guess);
    for (const Edition& edition : instance.program().editions)
      if (lattice::parse_variant(edition.lattice, name))
        return fail(error.code(), "{}; it is a variant in language {}, and this is {}", error.text(),
                    edition.language, instance.edition().language);
    return error;
  }

  Status add_named(std::string_view name) {
    auto parsed = lattice::parse_variant(lattice(), name);
    if (!parsed) return unknown(name, std::move(parsed).error());
    const lattice::Point& point = *parsed;
    if (const auto* knob = kept_out(lattice(), point, allow_lossy, &lattice::Knob::lossy))
      return fail(Code::denied, "variant '{}' lowers precision by knob '{}': allow it with --allow-lossy {}",
                  name, knob->name, knob->name);
    FURLONG_TRY(const std::string why, lattice().why_invalid(point, instance.facts()));
    if (!why.empty()) return fail(Code::invalid, "variant '{}' is not valid here: {}", name, why);
    chosen.add(point);
    return {};
  }
};

}  // namespace

Result<std::vector<lattice::Point>> Instance::select(std::string_view variants,
                                                     std::span<const std::string> allow_lossy) const {
  for (const std::string& name : allow_lossy) {
    std::vector<std::string> names;
    for (const lattice::Knob& knob : lattice().knobs) names.push_back(knob.name);
    if (lattice().knob(name) == nullptr)
      return fail(Code::invalid, "program '{}' has no knob '{}' whose loss could be allowed{}",
                  program_->name, name, did_you_mean(name, names));
  }
  Selection selection{.instance = *this, .allow_lossy = allow_lossy, .chosen = {}};
  FURLONG_TRY(const std::string why, lattice().why_invalid(lattice().base(), facts()));
  if (!why.empty())
    return fail(Code::invalid, "base of program '{}' is not valid on this problem and device: {}",
                program_->name, why);
  selection.chosen.add(lattice().base());
  for (const std::string& part : split(variants, ',')) {
    const std::string name(trim(part));
    if (name.empty()) return fail(Code::invalid, "a variant's name is empty in '{}'", variants);
    if (name == "all") {
      FURLONG_CHECK(selection.add_all());
    } else if (name == "catalogue") {
      FURLONG_CHECK(selection.add_catalogue());
    } else {
      FURLONG_CHECK(selection.add_named(name));
    }
  }
  return std::move(selection.chosen.points);
}

}  // namespace furlong::program
