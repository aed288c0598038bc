#pragma once
// A condition compiled for a walk that binds its knobs one after the other. After every step each
// subexpression has an interval; binding a knob recomputes only the subexpressions that name it, and going
// back costs nothing, because every (subexpression, step) has its own register.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "furlong/lattice/internal/interval.h"

namespace furlong::lattice::internal {

/// What a variable of the condition is: a fact, or the knob of a layer of the walk.
struct Binding {
  std::optional<Value> fact;
  std::uint32_t layer = 0;
};

class Residual {
 public:
  /// `bindings` has one entry a variable of the tree; `domains` the interval of each layer's values.
  Residual(std::shared_ptr<const Expression::Tree> tree, std::vector<Binding> bindings,
           const std::vector<Interval>& domains, WordIds& words);

  /// The layers whose knobs it names, ascending.
  const std::vector<std::uint32_t>& layers() const { return layers_; }
  /// With nothing bound.
  const Interval& unbound() const { return result(0); }
  /// Binds the knob of layers()[step - 1] after those before it, and gives what is known then.
  const Interval& bind(std::size_t step, const Interval& value);

  /// Appends what the rest of the walk depends on after `step` knobs: the largest subexpressions that are
  /// already settled. Two prefixes with equal keys leave the same condition on the other knobs. `chosen`
  /// are the value indices by layer, used where a subexpression has no interval of one number.
  void append_key(std::size_t step, const std::uint32_t* chosen, std::vector<std::int64_t>& key) const;

  const Expression::Tree& tree() const { return *tree_; }
  const std::vector<Binding>& bindings() const { return bindings_; }

 private:
  struct Step {
    std::vector<std::uint32_t> registers;  // by node: where its newest interval is
    std::vector<std::uint32_t> recompute;  // nodes that name the knob just bound, children first
    std::vector<std::uint32_t> settled;    // the largest nodes whose knobs are all bound
  };

  const Interval& result(std::size_t step) const { return registers_[steps_[step].registers[tree_->root()]]; }
  const Interval& at(std::uint32_t node, const Step& step) const { return registers_[step.registers[node]]; }
  void find_layers();
  void plan_steps();
  void plan_settled(std::size_t step);
  bool settled_after(std::uint32_t node, std::size_t step) const;
  void compute(std::uint32_t node, const Step& step);
  Interval joined(const Node& node, const Step& step, bool stop_at) const;
  Interval comparison(const Node& node, const Step& step);
  Interval membership(const Interval& item, std::uint32_t where, const Step& step);
  void gather(std::uint32_t first, std::uint32_t count, const Step& step);

  std::shared_ptr<const Expression::Tree> tree_;
  std::vector<Binding> bindings_;
  std::vector<std::uint32_t> layers_;
  std::vector<std::vector<std::uint32_t>> node_layers_;  // by node, ascending
  std::vector<bool>
      chooses_;  // by node: it or one below it gives one of its operands, so min(2, 2.0) an integer
  std::vector<Step> steps_;  // layers_.size() + 1
  std::vector<Interval> registers_;
  std::vector<Interval> operands_;  // scratch
};

}  // namespace furlong::lattice::internal
