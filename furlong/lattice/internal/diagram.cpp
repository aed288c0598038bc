#include "furlong/lattice/internal/diagram.h"

#include <algorithm>

namespace furlong::lattice::internal {
namespace {

constexpr std::uint32_t kDead = 0xffffffff;

/// From a key to a node: open addressing over keys kept one behind the other.
class Memo {
 public:
  Memo() : slots_(1024, 0) {}

  /// In entries of the size of an edge; long keys are the larger part of it.
  std::size_t size() const { return entries_.size() + keys_.size() * sizeof(keys_[0]) / sizeof(Edge); }

  std::optional<std::uint32_t> find(const std::vector<std::int64_t>& key, std::uint64_t hash) const {
    for (std::size_t slot = hash & (slots_.size() - 1); slots_[slot] != 0;
         slot = (slot + 1) & (slots_.size() - 1)) {
      const Entry& entry = entries_[slots_[slot] - 1];
      if (entry.hash == hash && entry.length == key.size() &&
          std::equal(key.begin(), key.end(), keys_.begin() + static_cast<std::ptrdiff_t>(entry.first)))
        return entry.node;
    }
    return std::nullopt;
  }

  void add(const std::vector<std::int64_t>& key, std::uint64_t hash, std::uint32_t node) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    entries_.push_back({hash, keys_.size(), static_cast<std::uint32_t>(key.size()), node});
    keys_.insert(keys_.end(), key.begin(), key.end());
    place(hash, static_cast<std::uint32_t>(entries_.size()));
  }

  static std::uint64_t hash(const std::vector<std::int64_t>& key) {
    std::uint64_t h = 0x9E3779B97F4A7C15ull ^ key.size();
    for (const auto word : key) {
      h = (h ^ static_cast<std::uint64_t>(word)) * 0xBF58476D1CE4E5B9ull;
      h ^= h >> 29;
    }
    return h;
  }

 private:
  struct Entry {
    std::uint64_t hash;
    std::size_t first;
    std::uint32_t length;
    std::uint32_t node;
  };

  void place(std::uint64_t hash, std::uint32_t entry) {
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = entry;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (std::size_t i = 0; i < entries_.size(); ++i)
      place(entries_[i].hash, static_cast<std::uint32_t>(i + 1));
  }

  std::vector<std::uint32_t> slots_;  // entry + 1; 0 is free
  std::vector<Entry> entries_;
  std::vector<std::int64_t> keys_;
};

/// Depth first over the layers. A prefix's state is which conditions are still open and what they depend
/// on; prefixes with equal states share one node.
class Builder {
 public:
  Builder(Diagram& diagram, Group& group, std::size_t max_nodes)
      : diagram_(diagram), group_(group), max_nodes_(max_nodes), chosen_(group.layers.size(), 0) {
    const std::size_t layers = group.layers.size();
    const std::size_t residuals = group.residuals.size();
    touching_.resize(layers);
    live_.resize(layers + 1);
    open_.assign(layers + 1, std::vector<std::uint8_t>(residuals, 1));
    keys_.resize(layers + 1);
    pending_.resize(layers);
    for (std::uint32_t r = 0; r < residuals; ++r) {
      const auto& own = group.residuals[r].layers();
      for (std::uint32_t s = 1; s <= own.size(); ++s) {
        touching_[own[s - 1]].push_back({r, s, s == own.size()});
        if (s == own.size()) continue;
        for (std::uint32_t l = own[s - 1] + 1; l <= own[s]; ++l) live_[l].push_back({r, s, false});
      }
    }
    // Conditions that end at a layer first: they exclude most and cost least.
    for (auto& list : touching_)
      std::sort(list.begin(), list.end(), [](const Touch& a, const Touch& b) {
        return a.completes != b.completes ? a.completes : a.residual < b.residual;
      });
  }

  Result<GroupResult> run() {
    GroupResult result;
    for (std::uint32_t r = 0; r < group_.residuals.size(); ++r) {
      const Residual& residual = group_.residuals[r];
      if (residual.layers().empty()) {
        if (!settle(r)) return result;
        open_[0][r] = 0;
      } else if (!residual.unbound().fails) {
        if (residual.unbound().surely_false()) return result;
        if (residual.unbound().surely_true()) open_[0][r] = 0;
      }
    }
    const std::uint32_t root = visit(0);
    if (refused_) return std::move(*refused_);
    if (stopped_) {
      result.error = poison_;
    } else if (root != kDead) {
      result.root = root;
    }
    return result;
  }

 private:
  struct Touch {
    std::uint32_t residual;
    std::uint32_t step;
    bool completes;
  };

  /// Evaluates a condition whose names all have values, and whose interval does not say it. An error
  /// poisons the prefix: it counts only if nothing else excludes the assignment.
  bool settle(std::uint32_t r) {
    const Residual& residual = group_.residuals[r];
    auto value = evaluate(residual.tree(), [&](std::uint32_t variable) -> const Value* {
      const Binding& binding = residual.bindings()[variable];
      if (binding.fact) return &*binding.fact;
      return group_.layers[binding.layer].values[chosen_[binding.layer]];
    });
    if (value) return value->truthy();
    if (!poison_)
      poison_ = fail(value.error().code(), "{}: {}", group_.residual_names[r], value.error().message());
    return true;
  }

  /// Whether the prefix up to this layer, with this value, can still be valid; open_[layer + 1] is then set.
  bool accept(std::uint32_t layer, std::uint32_t value) {
    auto& open = open_[layer + 1];
    open = open_[layer];
    chosen_[layer] = value;
    const Interval& interval = group_.layers[layer].intervals[value];
    for (const Touch& touch : touching_[layer]) {
      if (open[touch.residual] == 0) continue;
      const Interval& known = group_.residuals[touch.residual].bind(touch.step, interval);
      if (!known.fails && known.surely_false()) return false;
      if (!known.fails && known.surely_true()) {
        open[touch.residual] = 0;
      } else if (touch.completes) {
        if (!settle(touch.residual)) return false;
        open[touch.residual] = 0;
      }
    }
    return true;
  }

  void make_key(std::uint32_t layer) {
    auto& key = keys_[layer];
    key.clear();
    key.push_back(layer * 2 + (poison_ ? 1 : 0));
    for (const Touch& touch : live_[layer]) {
      if (open_[layer][touch.residual] == 0) {
        key.push_back(-2);
        continue;
      }
      group_.residuals[touch.residual].append_key(touch.step, chosen_.data(), key);
    }
  }

  std::uint32_t visit(std::uint32_t layer) {
    if (layer == group_.layers.size()) {
      if (!poison_) return Diagram::end;
      stopped_ = true;  // a valid assignment but for the error: the whole group fails
      return kDead;
    }
    make_key(layer);
    const std::uint64_t hash = Memo::hash(keys_[layer]);
    if (const auto known = memo_.find(keys_[layer], hash)) return *known;
    if (diagram_.nodes.size() + diagram_.edges.size() + memo_.size() > max_nodes_) return refuse(too_large());
    const std::uint32_t node = expand(layer);
    if (!stopped_) memo_.add(keys_[layer], hash, node);
    return node;
  }

  std::uint32_t expand(std::uint32_t layer) {
    auto& edges = pending_[layer];
    edges.clear();
    const auto& touching = touching_[layer];
    const bool free = std::none_of(touching.begin(), touching.end(),
                                   [&](const Touch& touch) { return open_[layer][touch.residual] != 0; });
    const auto values = static_cast<std::uint32_t>(group_.layers[layer].values.size());
    std::uint32_t child = kDead;
    for (std::uint32_t value = 0; value < values && !stopped_; ++value) {
      const bool was_clean = !poison_;
      if (!free || value == 0) child = accept(layer, value) ? visit(layer + 1) : kDead;
      if (child != kDead) edges.push_back({value, child, 0});
      if (was_clean && !stopped_) poison_.reset();
    }
    return stopped_ || edges.empty() ? kDead : close(edges);
  }

  std::uint32_t close(std::vector<Edge>& edges) {
    DiagramNode node{static_cast<std::uint32_t>(diagram_.edges.size()),
                     static_cast<std::uint32_t>(edges.size()), 0};
    for (auto& edge : edges) {
      edge.before = node.count;
      if (__builtin_add_overflow(node.count, diagram_.nodes[edge.child].count, &node.count))
        return refuse(fail(Code::exhausted, "more than 2^64-1 valid points"));
    }
    if (diagram_.edges.size() + edges.size() > max_nodes_) return refuse(too_large());
    diagram_.edges.insert(diagram_.edges.end(), edges.begin(), edges.end());
    diagram_.nodes.push_back(node);
    return static_cast<std::uint32_t>(diagram_.nodes.size() - 1);
  }

  Error too_large() const {
    return fail(
        Code::exhausted,
        "the index of the valid points passes {} nodes; bring knobs that share constraints nearer to each "
        "other, or raise the limit",
        max_nodes_);
  }

  std::uint32_t refuse(Error error) {
    refused_ = std::move(error);
    stopped_ = true;
    return kDead;
  }

  Diagram& diagram_;
  Group& group_;
  const std::size_t max_nodes_;
  std::vector<std::uint32_t> chosen_;            // value index by layer
  std::vector<std::vector<Touch>> touching_;     // by layer: conditions that name its knob
  std::vector<std::vector<Touch>> live_;         // by layer: conditions begun and not ended before it
  std::vector<std::vector<std::uint8_t>> open_;  // by layer, then condition: not settled by the prefix
  std::vector<std::vector<std::int64_t>> keys_;  // by layer, kept while its node is being expanded
  std::vector<std::vector<Edge>> pending_;       // by layer
  Memo memo_;
  std::optional<Error> poison_;
  std::optional<Error> refused_;
  bool stopped_ = false;
};

}  // namespace

Result<GroupResult> add_group(Diagram& diagram, Group& group, std::size_t max_nodes) {
  return Builder(diagram, group, max_nodes).run();
}

}  // namespace furlong::lattice::internal
