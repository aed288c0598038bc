#include "furlong/lattice/lattice.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/lattice/internal/conditions.h"

namespace furlong::lattice {
namespace {

using internal::Condition;

Status check_shape(const Lattice& lattice, const Point& point) {
  if (point.indices.size() != lattice.knobs.size())
    return fail(Code::invalid, "a point of {} values for a lattice of {} knobs", point.indices.size(),
                lattice.knobs.size());
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    const Knob& knob = lattice.knobs[k];
    if (point.indices[k] >= knob.values.size())
      return fail(Code::invalid, "knob '{}' has {} values; the point asks for number {}", knob.name,
                  knob.values.size(), point.indices[k]);
  }
  return {};
}

/// Knob values of one point, then facts.
class Names {
 public:
  Names(const Lattice& lattice, const Point& point, const Lookup& facts)
      : lattice_(lattice), point_(point), facts_(facts) {}

  const Value* find(const std::string& name) {
    if (const auto k = lattice_.knob_index(name)) return &lattice_.knobs[*k].values[point_.indices[*k]];
    fact_ = facts_ ? facts_(name) : std::nullopt;
    return fact_ ? &*fact_ : nullptr;
  }

  Result<Value> evaluate(const Condition& condition) {
    auto value = internal::evaluate(
        *condition.tree, [&](std::uint32_t variable) { return find(condition.tree->variables[variable]); });
    if (!value) return fail(value.error().code(), "{}: {}", condition.name, value.error().message());
    return value;
  }

  /// "a = 1, b = 2" of the condition's names.
  std::string list(const Condition& condition) {
    std::vector<std::string> parts;
    for (const auto& name : condition.tree->variables)
      if (const Value* value = find(name)) parts.push_back(name + " = " + value->text());
    return join(parts, ", ");
  }

 private:
  const Lattice& lattice_;
  const Point& point_;
  const Lookup& facts_;
  std::optional<Value> fact_;
};

std::string sentence(const Condition& condition, Names& names) {
  std::string text = fmt::format("{} does not hold with {}", condition.name, names.list(condition));
  if (!condition.reason.empty()) text += ": " + condition.reason;
  return text;
}

}  // namespace

std::string_view applies_name(Applies applies) {
  switch (applies) {
    case Applies::define:
      return "define";
    case Applies::option:
      return "option";
    case Applies::launch:
      return "launch";
    case Applies::rewrite:
      return "rewrite";
    case Applies::emit:
      return "emit";
  }
  return "define";
}

const Knob* Lattice::knob(std::string_view name) const {
  const auto index = knob_index(name);
  return index ? &knobs[*index] : nullptr;
}

std::optional<std::size_t> Lattice::knob_index(std::string_view name) const {
  for (std::size_t k = 0; k < knobs.size(); ++k)
    if (knobs[k].name == name) return k;
  return std::nullopt;
}

Point Lattice::base() const {
  Point point;
  for (const auto& knob : knobs) point.indices.push_back(static_cast<std::uint32_t>(knob.default_index));
  return point;
}

std::optional<Value> Lattice::value(const Point& point, std::string_view knob_name) const {
  const auto k = knob_index(knob_name);
  if (!k || *k >= point.indices.size() || point.indices[*k] >= knobs[*k].values.size()) return std::nullopt;
  return knobs[*k].values[point.indices[*k]];
}

Result<bool> Lattice::satisfies(const Point& point, const Lookup& facts) const {
  FURLONG_TRY(const std::string why, why_invalid(point, facts));
  return why.empty();
}

Result<std::string> Lattice::why_invalid(const Point& point, const Lookup& facts) const {
  FURLONG_CHECK(check_shape(*this, point));
  FURLONG_TRY(const auto all, internal::conditions(*this));
  Names names(*this, point, facts);
  std::optional<Error> first_error;
  for (const auto& condition : all) {
    auto value = names.evaluate(condition);
    // A later condition may exclude the point, and then this one need not have a value: 'b != 0' protects
    // 'a % b' wherever it stands in the list.
    if (!value && !first_error) first_error = std::move(value).error();
    if (value && !value->truthy()) return sentence(condition, names);
  }
  if (first_error) return std::move(*first_error);
  return std::string();
}

std::vector<std::string> lossy_knobs(const Lattice& lattice, const Point& point) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < lattice.knobs.size() && k < point.indices.size(); ++k)
    if (lattice.knobs[k].lossy.contains(point.indices[k])) names.push_back(lattice.knobs[k].name);
  return names;
}

std::vector<std::string> restricted_knobs(const Lattice& lattice, const Point& point) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < lattice.knobs.size() && k < point.indices.size(); ++k)
    if (lattice.knobs[k].restricted.contains(point.indices[k])) names.push_back(lattice.knobs[k].name);
  return names;
}

namespace {

Status exclude(Lattice& lattice, const Knob& knob, const std::set<std::size_t>& values,
               std::string_view reason) {
  std::vector<std::string> literals;
  for (const auto v : values)
    if (v < knob.values.size()) literals.push_back(knob.values[v].literal());
  FURLONG_TRY(auto expression,
              Expression::parse(fmt::format("{} not in [{}]", knob.name, join(literals, ", "))));
  lattice.constraints.push_back({std::move(expression), std::string(reason), knob.line});
  return {};
}

Status check_admitted(const Lattice& lattice, std::span<const std::string> names, std::string_view kind,
                      std::set<std::size_t> Knob::* values) {
  for (const auto& name : names) {
    std::vector<std::string> candidates;
    for (const auto& knob : lattice.knobs)
      if (!(knob.*values).empty()) candidates.push_back(knob.name);
    if (std::find(candidates.begin(), candidates.end(), name) == candidates.end())
      return fail(Code::invalid, "no knob '{}' with a {} value{}", name, kind,
                  did_you_mean(name, candidates));
  }
  return {};
}

}  // namespace

Result<Lattice> admitting(const Lattice& lattice, std::span<const std::string> lossy,
                          std::span<const std::string> restricted) {
  FURLONG_CHECK(check_admitted(lattice, lossy, "lossy", &Knob::lossy));
  FURLONG_CHECK(check_admitted(lattice, restricted, "restricted", &Knob::restricted));
  const auto names = [](std::span<const std::string> list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  Lattice result = lattice;
  for (const auto& knob : lattice.knobs) {
    if (!knob.lossy.empty() && !names(lossy, knob.name))
      FURLONG_CHECK(
          exclude(result, knob, knob.lossy, "a lossy value is used only when it is admitted by name"));
    if (!knob.restricted.empty() && !names(restricted, knob.name))
      FURLONG_CHECK(exclude(result, knob, knob.restricted,
                            "a value for some inputs only is used only when asked for by name"));
  }
  return result;
}

Result<std::vector<Point>> catalogue_points(const Lattice& lattice) {
  std::vector<Point> points;
  for (const auto& name : lattice.catalogue) {
    auto point = parse_variant(lattice, name);
    if (!point) return std::move(point).error().with(fmt::format("catalogue entry '{}'", name));
    points.push_back(std::move(*point));
  }
  return points;
}

}  // namespace furlong::lattice
