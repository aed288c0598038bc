#include "furlong/program/internal/scope.h"

#include <algorithm>

namespace furlong::program::internal {

bool same_problem(const lattice::Environment& a, const lattice::Environment& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
           const auto found = b.find(entry.first);
           return found != b.end() && found->second == entry.second;
         });
}

lattice::Lookup Scope::lookup() {
  return [this](std::string_view name) { return find(name); };
}

std::optional<lattice::Value> Scope::find(std::string_view name) {
  if (lattice_ != nullptr && point_ != nullptr)
    if (auto value = lattice_->value(*point_, name)) return value;
  if (const auto found = problem_.find(std::string(name)); found != problem_.end()) return found->second;
  if (const auto found = facts_.find(std::string(name)); found != facts_.end()) return found->second;
  if (const auto found = derived_.find(name); found != derived_.end()) return found->second;
  for (const auto& [let, expression] : program_.lets) {  // no cycles: the reader has seen to it
    if (let != name) continue;
    auto value = expression.evaluate(lookup());
    if (!value) {
      if (!derived_error_)
        derived_error_ = Error(std::move(value).error()).with(fmt::format("[let] '{}'", name));
      return std::nullopt;
    }
    derived_.emplace(name, *value);
    return *std::move(value);
  }
  return std::nullopt;
}

Result<lattice::Value> Scope::value(const lattice::Expression& expression, std::string_view what) {
  derived_error_.reset();
  auto value = expression.evaluate(lookup());
  if (value) return *std::move(value);
  // The reason is in the derived name; the expression itself would only say that the name has no value.
  Error error = derived_error_ ? *derived_error_ : value.error();
  return std::move(error).with(fmt::format("{} ('{}')", what, expression.text()));
}

Result<std::int64_t> Scope::integer(const lattice::Expression& expression, std::string_view what) {
  FURLONG_TRY(const lattice::Value result, value(expression, what));
  return lattice::to_integer(result, fmt::format("{} ('{}')", what, expression.text()));
}

Result<std::uint64_t> Scope::elements(const ArgumentSpec& argument) {
  const std::string what = fmt::format("size of argument '{}'", argument.name);
  FURLONG_TRY(const std::int64_t count, integer(argument.count, what));
  if (count < 1)
    return fail(Code::invalid, "{} ('{}') is {}; it must be at least 1", what, argument.count.text(), count);
  return static_cast<std::uint64_t>(count);
}

Result<double> Scope::number(const lattice::Expression& expression, std::string_view what) {
  FURLONG_TRY(const lattice::Value result, value(expression, what));
  if (const auto* real = result.floating()) return *real;
  FURLONG_TRY(const std::int64_t whole,
              lattice::to_integer(result, fmt::format("{} ('{}')", what, expression.text())));
  return static_cast<double>(whole);
}

}  // namespace furlong::program::internal
