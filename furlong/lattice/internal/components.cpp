#include "furlong/lattice/internal/components.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "furlong/base/text.h"
#include "furlong/lattice/internal/conditions.h"

namespace furlong::lattice::internal {
namespace {

/// Sets of knobs that grow together (union-find).
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t find(std::uint32_t k) {
    while (parent_[k] != k) k = parent_[k] = parent_[parent_[k]];
    return k;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);  // the first knob stands for its set
  }

 private:
  std::vector<std::uint32_t> parent_;
};

/// What each variable of a condition is: a knob's index or a fact.
struct Named {
  std::optional<std::uint32_t> knob;
  std::optional<Value> fact;
};

class Splitter {
 public:
  Splitter(const Lattice& lattice, const Lookup& facts)
      : lattice_(lattice), facts_(facts), sets_(lattice.knobs.size()) {}

  Result<std::vector<Component>> run() {
    for (std::uint32_t k = 0; k < lattice_.knobs.size(); ++k) {
      if (lattice_.knobs[k].values.empty())
        return fail(Code::invalid, "knob '{}' has no values", lattice_.knobs[k].name);
      by_name_.emplace(lattice_.knobs[k].name, k);
    }
    FURLONG_TRY(conditions_, conditions(lattice_));
    for (const auto& condition : conditions_) FURLONG_CHECK(name_variables(condition));
    std::vector<Component> components = place_knobs();
    for (std::size_t c = 0; c < conditions_.size(); ++c) add_residual(c, components);
    return components;
  }

 private:
  Status name_variables(const Condition& condition) {
    auto& named = named_.emplace_back();
    std::optional<std::uint32_t> first;
    for (std::size_t v = 0; v < condition.tree->variables.size(); ++v) {
      const std::string& name = condition.tree->variables[v];
      Named& entry = named.emplace_back();
      if (const auto found = by_name_.find(name); found != by_name_.end()) {
        entry.knob = found->second;
        if (!first) first = entry.knob;
        sets_.unite(*first, *entry.knob);
        continue;
      }
      entry.fact = facts_ ? facts_(name) : std::nullopt;
      if (entry.fact) continue;
      std::vector<std::string> candidates;
      for (const auto& knob : lattice_.knobs) candidates.push_back(knob.name);
      return fail(Code::invalid, "{}: column {}: '{}' is neither a knob nor known here{}", condition.name,
                  condition.tree->variable_columns[v], name, did_you_mean(name, candidates));
    }
    return {};
  }

  std::vector<Component> place_knobs() {
    std::vector<Component> components;
    component_of_.resize(lattice_.knobs.size());
    layer_of_.resize(lattice_.knobs.size());
    for (std::uint32_t k = 0; k < lattice_.knobs.size(); ++k) {
      const std::uint32_t first = sets_.find(k);
      component_of_[k] = first == k ? static_cast<std::uint32_t>(components.size()) : component_of_[first];
      if (first == k) components.emplace_back();
      Component& component = components[component_of_[k]];
      layer_of_[k] = static_cast<std::uint32_t>(component.knobs.size());
      component.knobs.push_back(k);
      auto& layer = component.group.layers.emplace_back();
      for (const auto& value : lattice_.knobs[k].values) {
        layer.values.push_back(&value);
        layer.intervals.push_back(interval_of(value, words_));
      }
    }
    if (components.empty()) components.emplace_back();  // the lattice without knobs has one point
    domains_.resize(components.size());
    for (std::size_t c = 0; c < components.size(); ++c) {
      for (const auto& layer : components[c].group.layers) {
        Interval domain = layer.intervals[0];
        for (const auto& interval : layer.intervals) domain = unite(domain, interval);
        domains_[c].push_back(domain);
      }
    }
    return components;
  }

  void add_residual(std::size_t c, std::vector<Component>& components) {
    std::vector<Binding> bindings;
    std::size_t component = 0;
    for (const auto& entry : named_[c]) {
      if (entry.knob) component = component_of_[*entry.knob];
      bindings.push_back({entry.fact, entry.knob ? layer_of_[*entry.knob] : 0});
    }
    Group& group = components[component].group;
    group.residuals.emplace_back(conditions_[c].tree, std::move(bindings), domains_[component], words_);
    group.residual_names.push_back(conditions_[c].name);
  }

  const Lattice& lattice_;
  const Lookup& facts_;
  Sets sets_;
  WordIds words_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::vector<Condition> conditions_;
  std::vector<std::vector<Named>> named_;  // by condition, then variable
  std::vector<std::uint32_t> component_of_;
  std::vector<std::uint32_t> layer_of_;
  std::vector<std::vector<Interval>> domains_;  // by component, then layer
};

}  // namespace

Result<std::vector<Component>> split_components(const Lattice& lattice, const Lookup& facts) {
  return Splitter(lattice, facts).run();
}

}  // namespace furlong::lattice::internal
