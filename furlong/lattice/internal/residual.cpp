#include "furlong/lattice/internal/residual.h"

#include <algorithm>

namespace furlong::lattice::internal {

Residual::Residual(std::shared_ptr<const Expression::Tree> tree, std::vector<Binding> bindings,
                   const std::vector<Interval>& domains, WordIds& words)
    : tree_(std::move(tree)), bindings_(std::move(bindings)) {
  find_layers();
  plan_steps();
  const Step& first = steps_[0];
  for (std::uint32_t id = 0; id < tree_->nodes.size(); ++id) {
    const Node& node = tree_->nodes[id];
    Interval& target = registers_[first.registers[id]];
    if (node.op == Op::constant) {
      target = interval_of(tree_->constants[node.payload], words);
    } else if (node.op == Op::name) {
      const Binding& binding = bindings_[node.payload];
      target = binding.fact ? interval_of(*binding.fact, words) : domains[binding.layer];
    } else {
      compute(id, first);
    }
  }
}

void Residual::find_layers() {
  node_layers_.resize(tree_->nodes.size());
  chooses_.resize(tree_->nodes.size());
  for (std::uint32_t id = 0; id < tree_->nodes.size(); ++id) {
    const Node& node = tree_->nodes[id];
    auto& own = node_layers_[id];
    if (node.op == Op::name && !bindings_[node.payload].fact) own.push_back(bindings_[node.payload].layer);
    chooses_[id] = node.op == Op::any_of || node.op == Op::all_of || node.op == Op::conditional ||
                   node.op == Op::minimum || node.op == Op::maximum;
    for (const auto child : tree_->children_of(node)) {
      own.insert(own.end(), node_layers_[child].begin(), node_layers_[child].end());
      chooses_[id] = chooses_[id] || chooses_[child];
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  layers_ = node_layers_[tree_->root()];
}

void Residual::plan_steps() {
  const std::size_t count = tree_->nodes.size();
  steps_.resize(layers_.size() + 1);
  steps_[0].registers.resize(count);
  for (std::uint32_t id = 0; id < count; ++id) steps_[0].registers[id] = id;
  auto next = static_cast<std::uint32_t>(count);
  for (std::size_t s = 1; s < steps_.size(); ++s) {
    steps_[s].registers = steps_[s - 1].registers;
    for (std::uint32_t id = 0; id < count; ++id) {
      if (!std::binary_search(node_layers_[id].begin(), node_layers_[id].end(), layers_[s - 1])) continue;
      steps_[s].registers[id] = next++;
      if (tree_->nodes[id].op != Op::list) steps_[s].recompute.push_back(id);
    }
    plan_settled(s);
  }
  registers_.resize(next);
}

bool Residual::settled_after(std::uint32_t node, std::size_t step) const {
  const auto& own = node_layers_[node];
  return tree_->nodes[node].op != Op::list && !own.empty() && own.back() <= layers_[step - 1];
}

void Residual::plan_settled(std::size_t step) {
  std::vector<std::uint32_t> todo{tree_->root()};
  std::vector<std::uint32_t> seen_names;
  while (!todo.empty()) {
    const std::uint32_t id = todo.back();
    todo.pop_back();
    const Node& node = tree_->nodes[id];
    if (!settled_after(id, step)) {
      for (const auto child : tree_->children_of(node)) todo.push_back(child);
      continue;
    }
    if (node.op == Op::name) {  // once is enough
      if (std::find(seen_names.begin(), seen_names.end(), node.payload) != seen_names.end()) continue;
      seen_names.push_back(node.payload);
    }
    steps_[step].settled.push_back(id);
  }
}

const Interval& Residual::bind(std::size_t step, const Interval& value) {
  const Step& now = steps_[step];
  for (const auto id : now.recompute) {
    if (tree_->nodes[id].op == Op::name) {
      registers_[now.registers[id]] = value;
    } else {
      compute(id, now);
    }
  }
  return result(step);
}

void Residual::append_key(std::size_t step, const std::uint32_t* chosen,
                          std::vector<std::int64_t>& key) const {
  const Step& now = steps_[step];
  for (const auto id : now.settled) {
    const Interval& known = at(id, now);
    // Where an operand was chosen, a number that may be a float may be an integer as well, and 2 ** 63 is not
    // 2.0 ** 63.
    if (known.exact() && !(known.real && chooses_[id])) {
      key.push_back(static_cast<std::int64_t>(known.kind) * 2 + (known.real ? 1 : 0));
      key.push_back(known.lo);
      continue;
    }
    key.push_back(-1);
    for (const auto layer : node_layers_[id]) key.push_back(chosen[layer]);
  }
}

void Residual::gather(std::uint32_t first, std::uint32_t count, const Step& step) {
  operands_.clear();
  for (std::uint32_t i = 0; i < count; ++i) operands_.push_back(at(tree_->children[first + i], step));
}

void Residual::compute(std::uint32_t id, const Step& step) {
  const Node& node = tree_->nodes[id];
  Interval& out = registers_[step.registers[id]];
  const auto child = [&](std::size_t i) -> const Interval& {
    return at(tree_->children[node.first_child + i], step);
  };
  switch (node.op) {
    case Op::constant:
    case Op::name:
    case Op::list:
      return;
    case Op::any_of:
      out = joined(node, step, true);
      return;
    case Op::all_of:
      out = joined(node, step, false);
      return;
    case Op::negation:
      out = Interval::truth(child(0).surely_true() || child(0).surely_false(), child(0).surely_false(),
                            child(0).fails);
      return;
    case Op::comparison:
      out = comparison(node, step);
      return;
    case Op::conditional: {
      const Interval& condition = child(1);
      if (condition.surely_true() || condition.surely_false()) {
        out = child(condition.surely_true() ? 0 : 2);
      } else {
        out = unite(child(0), child(2));
      }
      out.fails = out.fails || condition.fails;
      return;
    }
    case Op::unary:
      out = apply(static_cast<Unary>(node.payload), child(0));
      return;
    case Op::binary:
      out = apply(static_cast<Binary>(node.payload), child(0), child(1));
      return;
    case Op::ceil_div:
      out = internal::ceil_div(child(0), child(1));
      return;
    case Op::minimum:
    case Op::maximum: {
      const Node* source = &node;
      const Node& first = tree_->nodes[tree_->children[node.first_child]];
      if (node.child_count == 1 && first.op == Op::list) source = &first;
      gather(source->first_child, source->child_count, step);
      out = extreme(operands_, node.op == Op::minimum);
      return;
    }
  }
}

/// or (stop_at true) and and (false): operands that surely do not stop drop out, one that surely does ends.
Interval Residual::joined(const Node& node, const Step& step, bool stop_at) const {
  std::optional<Interval> result;
  bool fails = false;
  for (std::uint32_t i = 0; i < node.child_count; ++i) {
    const Interval& operand = at(tree_->children[node.first_child + i], step);
    fails = fails || operand.fails;
    const bool last = i + 1 == node.child_count;
    const bool stops = stop_at ? operand.surely_true() : operand.surely_false();
    const bool passes = stop_at ? operand.surely_false() : operand.surely_true();
    if (passes && !last) continue;
    result = result ? unite(*result, operand) : operand;
    if (stops) break;
  }
  result->fails = fails;
  return *result;
}

Interval Residual::comparison(const Node& node, const Step& step) {
  const auto children = tree_->children_of(node);
  Interval left = at(children[0], step);
  bool all_true = true;
  bool fails = left.fails;
  for (std::size_t i = 1; i < children.size(); ++i) {
    const Comparator comparator = tree_->comparators[node.payload + i - 1];
    Interval holds;
    if (comparator >= Comparator::in) {
      holds = membership(left, children[i], step);
      if (comparator == Comparator::not_in && holds.lo == holds.hi)
        holds = Interval::truth(true, holds.lo == 0, holds.fails);
      left = at(children[i], step);
    } else {
      const Interval& right = at(children[i], step);
      holds = compare(comparator, left, right);
      left = right;
    }
    fails = fails || holds.fails;
    // Whichever comparison of the chain ends it, the chain is false.
    if (holds.surely_false()) return Interval::truth(true, false, fails);
    all_true = all_true && holds.surely_true();
  }
  return Interval::truth(all_true, true, fails);
}

Interval Residual::membership(const Interval& item, std::uint32_t where, const Step& step) {
  const Node& list = tree_->nodes[where];
  if (list.op != Op::list) return Interval::truth(false, false, true);  // part of a word: left to evaluation
  gather(list.first_child, list.child_count, step);
  return contains(item, operands_);
}

}  // namespace furlong::lattice::internal
