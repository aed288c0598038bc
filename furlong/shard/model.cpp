#include "furlong/shard/model.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/table.h"
#include "furlong/base/text.h"

namespace furlong::shard {

double nlogn(double x) { return x * std::log2(x + 2); }

std::string_view term_form_name(TermForm form) { return form == TermForm::linear ? "linear" : "nlogn"; }

double TermSum::at(const Counters& counters) const {
  double sum = base;
  for (const Term& term : terms) {
    const auto counter = counters.find(term.feature);
    if (counter != counters.end()) sum += term.at(counter->second);
  }
  return sum;
}

Status apply_model(const Model& model, Sizing& sizing, WorkSource source) {
  if (sizing.budget_bytes != 0 && !model.memory)
    return fail(
        Code::invalid,
        "the model does not say how much memory a job takes: fit it on runs with their peaks, or give no "
        "budget of memory");
  if (sizing.budget_seconds > 0 && !model.seconds)
    return fail(
        Code::invalid,
        "the model does not say how long a job takes: fit it on runs with their seconds, or give no budget "
        "of time");
  if (model.memory) {
    sizing.base_bytes = static_cast<std::uint64_t>(std::ceil(model.memory->formula.base));
    sizing.ram_per_work = model.memory->formula.per_work;
    sizing.fitted = true;
  }
  if (model.seconds) {
    sizing.base_seconds = model.seconds->formula.base;
    sizing.seconds_per_work = model.seconds->formula.per_work;
  }
  const auto& usable = source == WorkSource::measured ? model.usable : model.usable_from_counters;
  if (usable) sizing.usable = *usable;
  return {};
}

Result<Gate> gate(const Model& model, const Cost& check, Sizing budgets) {
  FURLONG_CHECK(apply_model(model, budgets, WorkSource::measured));
  Gate gate;
  gate.work = check.work;
  if (model.memory) gate.bytes = static_cast<std::uint64_t>(std::ceil(budgets.predicted_bytes(check)));
  if (model.seconds) gate.seconds = model.seconds->formula.at(check.work);
  gate.over_budget = budgets.over_budget(check);
  gate.reaches_cut = budgets.reaches_cut(check);
  return gate;
}

std::string Gate::text() const {
  std::string text = fmt::format("W {:.4g}", work);
  if (bytes != 0) text += fmt::format(", predicted peak {}", human_bytes(bytes));
  if (seconds > 0) text += fmt::format(", predicted time {:.4g} s", seconds);
  text += over_budget   ? ": over the budget"
          : reaches_cut ? ": within the budget, over its usable share"
                        : ": within the budget's usable share";
  return text;
}

namespace {

std::string formula_text(const TermSum& sum) {
  std::string text = fmt::format("{:.4g}", sum.base);
  for (const Term& term : sum.terms)
    text += term.form == TermForm::nlogn ? fmt::format(" + {:.4g} nlogn({})", term.coefficient, term.feature)
                                         : fmt::format(" + {:.4g} {}", term.coefficient, term.feature);
  return text;
}
std::string formula_text(const Line& line) {
  return fmt::format("{:.4g} + {:.4g} W", line.base, line.per_work);
}

std::string share(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string under(double value) { return value > 0 ? fmt::format("-{:.1f}%", 100 * value) : "none"; }

void add_row(Table& table, std::string what, std::string formula, const Quality& quality) {
  table.row({std::move(what), std::move(formula), std::to_string(quality.runs), share(quality.mape),
             under(quality.worst_under), std::to_string(quality.unseen),
             quality.unseen == 0 ? "-" : share(quality.unseen_mape),
             quality.unseen == 0 ? "-" : under(quality.unseen_worst_under)});
}

template <class Formula>
void add_row(Table& table, std::string what, const std::optional<Fitted<Formula>>& fitted) {
  if (fitted) add_row(table, std::move(what), formula_text(fitted->formula), fitted->quality);
}

std::string usable_text(const std::optional<double>& usable) {
  return usable ? fmt::format("{:.2f}", *usable) : "unknown";
}

}  // namespace

std::string model_text(const Model& model) {
  Table table;
  for (const char* heading : {"what", "formula"}) table.column(heading);
  for (const char* heading : {"runs", "MAPE", "worst under", "unseen", "MAPE unseen", "worst unseen"})
    table.column(heading, Table::Align::right);
  add_row(table, "W", model.work);
  add_row(table, "record bytes", model.record_bytes);
  add_row(table, "job bytes but for the record", model.memory);
  add_row(table, "job seconds", model.seconds);
  add_row(table, "check bytes but for the record", model.check_memory);
  add_row(table, "check seconds", model.check_seconds);
  if (model.memory_from_counters) add_row(table, "job bytes from counters", "", *model.memory_from_counters);
  const Provenance& from = model.provenance;
  std::string text = table.text();
  text += fmt::format(
      "fitted on {} runs{} of {} {} over the store {}, machine {}, {}\n", from.runs,
      from.held_out == 0 ? ", none held out," : fmt::format(", {} of them held out,", from.held_out),
      one_line(from.executor), from.executor_version, one_line(from.store), one_line(from.machine),
      one_line(from.date));
  if (!from.note.empty()) text += one_line(from.note) + "\n";
  text +=
      fmt::format("recommended usable share: {} with a measured W, {} with one from counters (margin {})\n",
                  usable_text(model.usable), usable_text(model.usable_from_counters), model.margin);
  return text;
}

}  // namespace furlong::shard
