#include "furlong/select/select.h"

#include <algorithm>
#include <map>
#include <set>

#include "furlong/base/architecture.h"
#include "furlong/base/text.h"
#include "furlong/select/internal/loss.h"
#include "furlong/select/internal/nearest.h"

namespace furlong {
namespace {

using selecting::Entry;
using selecting::Question;

Question question_of(const program::Instance& instance, const device::Facts& facts) {
  Question question;
  question.query = tuning_query(instance, facts);
  for (const auto& [name, unused] : instance.program().problem)
    question.problem.emplace_back(name, instance.problem().at(name));
  question.backend = facts.backend;
  return question;
}

// A tuning made for other programs is a mistake of the caller, unlike one that does not know a card.
Status check_program(const record::Tuning& tuning, const std::string& program, const std::string& name) {
  std::set<std::string> programs;
  for (const record::TuningCard& card : tuning.cards)
    for (const record::TuningRow& row : card.rows) programs.insert(row.program);
  if (programs.empty() || programs.contains(program)) return {};
  const std::vector<std::string> names(programs.begin(), programs.end());
  return fail(Code::invalid, "{} is of program{} '{}' and has nothing for '{}'{}", name,
              names.size() == 1 ? "" : "s", join(names, "', '"), program, did_you_mean(program, names));
}

/// Which variants may be chosen here, each asked once.
class Admission {
 public:
  Admission(const program::Instance& instance, const SelectOptions& options)
      : instance_(instance), options_(options) {}

  /// The point, or why not.
  const Result<lattice::Point>& point(const std::string& variant) {
    const auto known = known_.find(variant);
    return known != known_.end() ? known->second : known_.emplace(variant, ask(variant)).first->second;
  }

 private:
  Result<lattice::Point> ask(const std::string& variant) const {
    const lattice::Lattice& lattice = instance_.lattice();
    FURLONG_TRY(lattice::Point point, lattice::parse_variant(lattice, variant));
    for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
      const lattice::Knob& knob = lattice.knobs[k];
      if (std::ranges::find(options_.allow, knob.name) != options_.allow.end()) continue;
      if (knob.lossy.contains(point.indices[k]))
        return fail(Code::denied, "it lowers precision by knob '{}'", knob.name);
      if (knob.restricted.contains(point.indices[k]))
        return fail(Code::denied, "it is right only for some inputs, by knob '{}'", knob.name);
    }
    FURLONG_TRY(const std::string why, lattice.why_invalid(point, instance_.facts()));
    if (!why.empty()) return fail(Code::invalid, "it is not valid here: {}", why);
    return point;
  }

  const program::Instance& instance_;
  const SelectOptions& options_;
  std::map<std::string, Result<lattice::Point>> known_;
};

/// The variants that a measurement speaks for, best first. Base only where it won: it is what is left at the
/// end anyway.
std::vector<std::string> named_by(const Entry& entry) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  if (entry.size != nullptr) {
    add(entry.size->variant);
    auto gains = entry.size->gains_pct;
    std::ranges::sort(gains, [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    for (const auto& [name, gain] : gains)
      if (gain > 0) add(name);
  } else {
    add(entry.row->variant);
  }
  for (const std::string& name : entry.row->candidates)
    if (name != "base") add(name);
  return names;
}

std::string place_text(const Entry& entry, const Question& question) {
  std::string text;
  const record::Silicon& own = question.query.silicon;
  switch (entry.card_fit) {
    case CardFit::own:
      text = fmt::format("on this card ({})", entry.card->key);
      break;
    case CardFit::same_architecture:
      text = fmt::format("on {}, the nearest measured card of architecture {}", entry.card->key, own.arch);
      break;
    default:
      text = fmt::format("on {}, the nearest measured card of {}", entry.card->key, own.vendor);
  }
  if (entry.size == nullptr) {
    if (entry.row->program_class.empty()) return text + ", for every size";
    return fmt::format("{}, for {}{}", text,
                       entry.size_fit == SizeFit::nearest ? "the nearest class, " : "class ",
                       record::class_text(entry.row->program_class));
  }
  text += ", at " + record::class_text(entry.size->problem);
  if (entry.size_fit != SizeFit::nearest) return text;
  const std::size_t sizes = entry.row->sizes.size();
  return fmt::format("{}, the {} to {}", text,
                     sizes == 1 ? "only measured size, where the question is"
                                : fmt::format("nearest of {} measured sizes", sizes),
                     record::class_text(question.problem));
}

std::string loss_text(const Selection& selection) {
  if (!selection.expected_loss) return "what it loses here is not known before a race here";
  if (*selection.expected_loss == 0 && selection.fit() == "exact")
    return "nothing to lose by what was measured";
  return fmt::format("expected to lose {:.1f}% of what a race here would find",
                     100 * *selection.expected_loss);
}

void describe(Selection& selection, const Entry& entry, const Question& question) {
  const std::string& winner = entry.size != nullptr ? entry.size->variant : entry.row->variant;
  const std::string_view did = selection.variant != winner   ? "was the best that can run here of those raced"
                               : selection.variant == "base" ? "was not beaten"
                                                             : "won";
  selection.how =
      fmt::format("{} {} {}; {}", selection.variant, did, place_text(entry, question), loss_text(selection));
}

void take(Selection& selection, const record::Tuning& tuning, const Question& question, const Entry& entry,
          const std::string& variant, const lattice::Point& point) {
  selection.point = point;
  selection.variant = variant;
  selection.card = entry.card_fit;
  selection.size = entry.size_fit;
  selection.measured_on = entry.card->key;
  selection.measured_at = entry.size != nullptr ? entry.size->problem : entry.row->program_class;
  selection.measured_gain = selecting::gain_at(entry, variant);
  selection.expected_loss = selecting::expected_loss(tuning, question, entry, variant);
  const std::string source = selection.instance.program().source_hash().hex();
  if (!entry.row->source.empty() && entry.row->source != source)
    selection.notes.push_back(
        fmt::format("the row of {} was raced with another text of {}", entry.card->key, entry.row->program));
  describe(selection, entry, question);
}

void take_base(Selection& selection, bool any, const std::string& tuning_name) {
  selection.point = selection.instance.lattice().base();
  selection.variant = "base";
  selection.how =
      fmt::format("base: {} {}; {}", tuning_name,
                  any ? "names no variant that can run here" : "has no card of this vendor and back end",
                  loss_text(selection));
}

}  // namespace

std::string_view Selection::fit() const {
  if (card == CardFit::none) return "base";
  const bool here = card == CardFit::own, sized = size != SizeFit::nearest;
  if (here) return sized ? "exact" : "nearest size";
  return sized ? "nearest card" : "nearest card and size";
}

Result<Selection> select(std::shared_ptr<const program::Program> program, const device::Facts& facts,
                         const std::vector<std::pair<std::string, lattice::Value>>& problem,
                         const record::Tuning& tuning, const SelectOptions& options) {
  FURLONG_CHECK(check_program(tuning, program->name, options.tuning_name));
  std::string language = options.language;
  if (language.empty()) {
    FURLONG_TRY(language, common_language(*program, facts));
  }
  Selection selection;
  FURLONG_TRY(selection.instance,
              program::Instance::make(program, language, problem, expression_facts(facts)));
  FURLONG_CHECK(selection.instance.select("base"));
  const Question question = question_of(selection.instance, facts);
  const std::vector<Entry> entries = selecting::ranked(tuning, question, selection.notes);
  Admission admission(selection.instance, options);
  std::set<std::string> told;
  for (const Entry& entry : entries) {
    for (const std::string& variant : named_by(entry)) {
      const Result<lattice::Point>& point = admission.point(variant);
      if (point) {
        take(selection, tuning, question, entry, variant, *point);
        return selection;
      }
      if (told.insert(variant).second)
        selection.notes.push_back(
            fmt::format("{} of {} is passed over: {}", variant, entry.card->key, point.error().text()));
    }
  }
  take_base(selection, !entries.empty(), options.tuning_name);
  return selection;
}

record::TuningQuery tuning_query(const program::Instance& instance, const device::Facts& facts) {
  const device::Silicon& silicon = facts.silicon;
  record::TuningQuery query{.silicon = {.vendor = silicon.vendor,
                                        .arch = silicon.arch,
                                        .multiprocessors = silicon.multiprocessors,
                                        .memory_bytes = silicon.memory_bytes,
                                        .memory_clock_mhz = silicon.memory_clock_mhz,
                                        .hash = silicon.hash(),
                                        .extra = {}},
                            .label = facts.label,
                            .program = instance.program().name,
                            .program_class = {},
                            .driver = facts.driver};
  for (const auto& [name, value] : instance.class_values()) query.program_class.emplace_back(name, value);
  return query;
}

lattice::Environment expression_facts(const device::Facts& facts) {
  return {
      {"device.backend", lattice::Value(facts.backend)},
      {"device.vendor", lattice::Value(facts.silicon.vendor)},
      {"device.arch", lattice::Value(facts.silicon.arch)},
      {"device.sm", lattice::Value(compute_capability(facts.silicon.arch))},
      {"device.warp", lattice::Value(facts.warp)},
      {"device.max_threads", lattice::Value(facts.max_threads_per_block)},
      {"device.shared_bytes", lattice::Value(static_cast<std::int64_t>(facts.max_shared_bytes))},
      {"device.multiprocessors", lattice::Value(facts.silicon.multiprocessors)},
      {"device.memory_mib", lattice::Value(static_cast<std::int64_t>(facts.silicon.memory_bytes >> 20))},
  };
}

Result<std::string> common_language(const program::Program& program, const device::Facts& facts) {
  std::vector<std::string> device_languages, program_languages;
  for (const device::Language language : facts.languages)
    device_languages.emplace_back(device::language_name(language));
  for (const auto& edition : program.editions) program_languages.push_back(edition.language);
  for (const std::string& language : device_languages)
    if (program.edition(language) != nullptr) return language;
  return fail(Code::invalid, "program '{}' is written in {}; device {} runs {}", program.name,
              join(program_languages, ", "), facts.address(), join(device_languages, ", "));
}

}  // namespace furlong
