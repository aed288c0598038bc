#include "furlong/program/internal/init_plan.h"

#include <algorithm>
#include <array>
#include <set>

#include "furlong/base/text.h"
#include "furlong/program/internal/reader.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kMostKnobs = 12;
constexpr std::size_t kMostSizes = 3;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::vector<std::int64_t> proposed_values(std::int64_t value) {
  if (value == 0) return {0, 1};
  if (value == 1) return {1, 2, 4};
  const bool power = value > 1 && (value & (value - 1)) == 0;
  if (power && value <= 1 << 20) return {value, value / 2, value * 2};
  return {value, value > 0 ? value - 1 : value + 1};
}

bool names_block(const std::string& macro) {
  const std::string name = lower(macro);
  for (const std::string_view word :
       {"block", "thread", "group", "local_size", "wg_size", "tpb", "workgroup"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

class Planner {
 public:
  Planner(std::string_view source, std::string_view language, const KernelText& kernel)
      : source_(source), language_(language), kernel_(kernel) {}

  InitPlan plan() {
    choose_sizes();
    choose_knobs();
    return std::move(plan_);
  }

 private:
  void choose_sizes() {
    for (const Parameter& parameter : kernel_.parameters)
      if (is_size(parameter) && plan_.sizes.size() < kMostSizes)
        plan_.sizes.push_back(expression_name(parameter.name));
    if (plan_.sizes.empty()) plan_.sizes.push_back("n");
    for (const std::string& size : plan_.sizes) {
      if (!plan_.elements.empty()) plan_.elements += " * ";
      plan_.elements += size;
      taken_.insert(size);
    }
    static constexpr std::array<int, 3> defaults = {1 << 20, 1024, 64};
    plan_.default_size = defaults[plan_.sizes.size() - 1];
  }

  std::string free_name(const std::string& macro) {
    std::string name = expression_name(lower(macro));
    if (!is_identifier(name) || taken_.contains(name)) name = expression_name(macro);
    while (taken_.contains(name)) name += "_";
    taken_.insert(name);
    return name;
  }

  void choose_knobs() {
    for (const auto& parameter : kernel_.templates)
      if (!parameter.is_type) {
        const bool block = names_block(parameter.name);
        plan_.knobs.push_back({.name = free_name(parameter.name),
                               .macro = {},
                               .values = block ? std::vector<std::int64_t>{256, 64, 128, 512}
                                               : std::vector<std::int64_t>{1, 2, 4},
                               .launch = true,
                               .guarded = true,
                               .line = {}});
        if (block && plan_.block.empty()) plan_.block = plan_.knobs.back().name;
      }
    for (const MacroText& macro : find_macros(source_)) add_macro(macro);
    if (plan_.block.empty() && kernel_.fixed_block.size() == 1 && !two_dimensions())
      plan_.block = fmt::format("{}", kernel_.fixed_block[0]);
    if (!plan_.block.empty()) return;
    if (two_dimensions()) return choose_two_dimensions();
    plan_.block = free_name("block");
    plan_.knobs.push_back({.name = plan_.block,
                           .macro = {},
                           .values = {256, 64, 128, 512},
                           .launch = true,
                           .guarded = true,
                           .line = {}});
  }

  void choose_two_dimensions() {
    if (language_ == "host") return;  // a block of one thread
    if (kernel_.fixed_block.size() >= 2) {
      plan_.block_x = fmt::format("{}", kernel_.fixed_block[0]);
      plan_.block_y = fmt::format("{}", kernel_.fixed_block[1]);
      return;
    }
    for (std::string* name : {&plan_.block_x, &plan_.block_y}) {
      *name = free_name(name == &plan_.block_x ? "block_x" : "block_y");
      plan_.knobs.push_back(
          {.name = *name, .macro = {}, .values = {16, 8, 32}, .launch = true, .guarded = true, .line = {}});
    }
  }

  void add_macro(const MacroText& macro) {
    if (macro.uses < 1 || plan_.knobs.size() >= kMostKnobs) return;
    // Without a guard the source's own #define would win over -D, so the line itself is rewritten, which
    // needs it to be there once.
    const std::size_t at = source_.find(macro.line);
    if (!macro.guarded && (trim(macro.line).size() < 10 || at == std::string_view::npos ||
                           source_.find(macro.line, at + 1) != std::string_view::npos))
      return;
    if (!macro.guarded && !is_valid_utf8(macro.line)) return;
    if (std::any_of(plan_.knobs.begin(), plan_.knobs.end(),
                    [&](const InitPlan::Knob& k) { return k.macro == macro.name; }))
      return;
    InitPlan::Knob knob{.name = free_name(macro.name),
                        .macro = macro.name,
                        .values = proposed_values(macro.value),
                        .launch = false,
                        .guarded = macro.guarded,
                        .line = macro.line};
    if (plan_.block.empty() && macro.value >= 16 && macro.value <= 1024 && names_block(macro.name) &&
        !two_dimensions()) {
      knob.launch = true;
      plan_.block = knob.name;
    }
    plan_.knobs.push_back(std::move(knob));
  }

  bool two_dimensions() const {
    for (const std::string_view word : {"threadIdx", "blockIdx", "block"})
      if (kernel_.body.find(std::string(word) + ".y") != std::string::npos) return true;
    for (const std::string_view word : {"get_global_id(1", "get_group_id(1", "get_local_id(1"})
      if (replace_all(kernel_.body, " ", "").find(word) != std::string::npos) return true;
    return false;
  }

  std::string_view source_;
  std::string_view language_;
  const KernelText& kernel_;
  std::set<std::string> taken_;
  InitPlan plan_;
};

}  // namespace

std::string expression_name(std::string name) {
  static const std::set<std::string> reserved = {"and",  "or",    "not",      "in",   "if",    "else",
                                                 "True", "False", "None",     "true", "false", "min",
                                                 "max",  "abs",   "ceil_div", "int"};
  return reserved.contains(name) ? name + "_" : name;
}

bool is_size(const Parameter& parameter) {
  return !parameter.pointer && parameter.type && !is_floating(*parameter.type) && parameter.lanes == 1 &&
         element_bytes(*parameter.type) >= 4;
}

InitPlan plan_first_program(std::string_view source, std::string_view language, const KernelText& kernel) {
  return Planner(source, language, kernel).plan();
}

}  // namespace furlong::program::internal
