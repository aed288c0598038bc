#include "furlong/lattice/lint.h"

#include <algorithm>
#include <set>

#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/lattice/internal/conditions.h"
#include "furlong/lattice/internal/reachability.h"
#include "furlong/lattice/internal/variant_names.h"
#include "furlong/lattice/space.h"

namespace furlong::lattice {
namespace {

constexpr std::uint64_t kMostWalkedPoints = 1'000'000;
constexpr int kRandomPoints = 1000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A name as expressions can write it: parts joined by dots.
bool is_name(std::string_view text) {
  for (const auto& part : split(text, '.')) {
    if (part.empty() || !is_letter(part[0])) return false;
    if (!std::all_of(part.begin(), part.end(), [](char c) { return is_letter(c) || is_digit(c); }))
      return false;
  }
  static const std::set<std::string_view> keywords = {"and",  "or",    "not",  "in",   "if",   "else",
                                                      "True", "False", "None", "true", "false"};
  return !keywords.contains(text);
}

/// What may stand in file names, race lines and lists without quoting.
bool is_tag(std::string_view tag) {
  if (tag.starts_with('-') || tag.ends_with('-') || tag.find("--") != std::string_view::npos) return false;
  return std::all_of(tag.begin(), tag.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '+'; });
}

/// A number that stands for itself: not the 8 of int8, the 80 of sm_80, nor 2D.
bool has_number(std::string_view sentence) {
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    if (!is_digit(sentence[i])) continue;
    const bool inside_a_word = i > 0 && is_letter(sentence[i - 1]);
    std::size_t end = i;
    while (end < sentence.size() && is_digit(sentence[end])) ++end;
    const bool dimensions = end == i + 1 && end < sentence.size() && sentence[end] == 'D' &&
                            (end + 1 == sentence.size() || !is_letter(sentence[end + 1]));
    if (!inside_a_word && !dimensions) return true;
    i = end - 1;
  }
  return false;
}

class Linter {
 public:
  Linter(const Lattice& lattice, const LintOptions& options) : lattice_(lattice), options_(options) {}

  std::vector<Finding> run() {
    for (std::size_t k = 0; k < lattice_.knobs.size(); ++k) check_knob(k);
    check_names();
    check_strictly_better();
    const std::size_t before = findings_.size();
    for (const auto& constraint : lattice_.constraints)
      check_variables(constraint.expression, "constraint '" + constraint.expression.text() + "'",
                      constraint.line);
    for (const auto& knob : lattice_.knobs) check_requirement(knob);
    const bool known = findings_.size() == before;
    if (!sound_) return std::move(findings_);
    check_catalogue(known);
    if (known && check_base()) check_points();
    return std::move(findings_);
  }

 private:
  void add(std::string where, std::string what, int line) {
    findings_.push_back({std::move(where), std::move(what), line});
  }

  /// A fault after which points of this lattice mean nothing.
  void unsound(std::string where, std::string what, int line) {
    sound_ = false;
    add(std::move(where), std::move(what), line);
  }

  void check_knob(std::size_t k) {
    const Knob& knob = lattice_.knobs[k];
    const std::string where = "knob '" + knob.name + "'";
    if (!is_name(knob.name))
      unsound(
          where,
          "the name must be letters, digits and '_', with dots between parts; expressions could not name it",
          knob.line);
    for (std::size_t other = 0; other < k; ++other)
      if (lattice_.knobs[other].name == knob.name)
        unsound(where, "two knobs have this name; rename one", knob.line);
    check_values(knob, where);
    check_tags(knob, where);
    check_sentences(knob, where);
    for (std::size_t c = 0; c < knob.claims.size(); ++c) check_claim(knob, where, c);
    if (knob.applies.empty())
      add(where, "nothing says how it reaches the kernel; state define, option, launch, rewrite or emit",
          knob.line);
    check_options(knob, where);
    for (const auto& name : knob.coupled) {
      if (name == knob.name) add(where, "it is coupled with itself; name the other knob", knob.line);
      if (lattice_.knob(name) == nullptr)
        add(where,
            fmt::format("coupled with '{}', which is no knob{}", name, did_you_mean(name, knob_names())),
            knob.line);
    }
  }

  void check_values(const Knob& knob, const std::string& where) {
    if (knob.values.size() < 2) {
      const std::string what = "a knob has at least two values; bake a single one in";
      knob.values.empty() ? unsound(where, what, knob.line) : add(where, what, knob.line);
    }
    for (std::size_t v = 0; v < knob.values.size(); ++v)
      for (std::size_t other = 0; other < v; ++other)
        if (knob.values[v] == knob.values[other])
          add(where,
              fmt::format("the values {} and {} are equal; keep one", knob.values[other].literal(),
                          knob.values[v].literal()),
              knob.line);
    if (knob.default_index >= knob.values.size() && !knob.values.empty())
      unsound(where,
              fmt::format("the default is value number {} of {}; name one of the values", knob.default_index,
                          knob.values.size()),
              knob.line);
    check_marked(knob, where, knob.lossy, "lossy");
    check_marked(knob, where, knob.restricted, "restricted");
  }

  void check_marked(const Knob& knob, const std::string& where, const std::set<std::size_t>& marked,
                    std::string_view kind) {
    for (const auto v : marked) {
      if (v >= knob.values.size())
        add(where, fmt::format("value number {} is marked {}, and there is none", v, kind), knob.line);
      if (v == knob.default_index)
        add(where, fmt::format("the default is {}; the default must be right for every input", kind),
            knob.line);
    }
  }

  void check_tags(const Knob& knob, const std::string& where) {
    if (knob.tags.size() != knob.values.size()) {
      unsound(where,
              fmt::format("{} tags for {} values; state one a value, the default's empty", knob.tags.size(),
                          knob.values.size()),
              knob.line);
      return;
    }
    for (std::size_t v = 0; v < knob.tags.size(); ++v) {
      const std::string& tag = knob.tags[v];
      const std::string value = knob.values[v].literal();
      if (v == knob.default_index && !tag.empty())
        unsound(where,
                fmt::format("the default {} has the tag '{}'; an empty tag belongs to the real default",
                            value, tag),
                knob.line);
      if (v != knob.default_index && tag.empty())
        unsound(where,
                fmt::format(
                    "the value {} has no tag, and it is not the default; variants of it could not be named",
                    value),
                knob.line);
      if (!is_tag(tag))
        add(where, fmt::format("tag '{}': letters, digits, '_', '.', '+' and single inner '-' only", tag),
            knob.line);
      if (tag == "all" || tag == "catalogue")
        add(where, fmt::format("tag '{}' means a set of variants on the command line; choose another", tag),
            knob.line);
    }
  }

  void check_sentences(const Knob& knob, const std::string& where) {
    const bool wins = !trim(knob.wins).empty();
    const bool loses = !trim(knob.loses).empty();
    if (!options_.user_file) {
      if (!wins)
        add(where, "no sentence says where it wins; a transform that never wins is no knob", knob.line);
      if (!loses)
        add(where, "no sentence says where it loses; what never loses is strictly better and belongs there",
            knob.line);
    }
    if (wins && loses && trim(knob.wins) == trim(knob.loses))
      add(where, "wins and loses are the same sentence; name the two regimes", knob.line);
    if (!trim(knob.evidence).empty()) return;
    for (const auto& [sentence, name] : {std::pair(&knob.wins, "wins"), std::pair(&knob.loses, "loses")})
      if (has_number(*sentence))
        add(where,
            fmt::format("'{}' states a number, and no evidence names the bench that produced it", name),
            knob.line);
  }

  /// That it says something of this knob that records could tell, and that its side has a sentence.
  void check_claim(const Knob& knob, const std::string& where, std::size_t c) {
    const Claim& claim = knob.claims[c];
    const int line = claim.line > 0 ? claim.line : knob.line;
    if (claim.value >= knob.values.size()) {
      add(where, fmt::format("a claim about value number {}, and there is none", claim.value), line);
      return;
    }
    const std::string what = fmt::format("the claim that {} {}", knob.values[claim.value].literal(),
                                         claim_outcome_name(claim.outcome));
    if (claim.value == knob.default_index)
      add(where, what + ": it is the default, which every other value is compared with", line);
    if (claim.outcome == ClaimOutcome::wins && trim(knob.wins).empty())
      add(where, what + ": 'wins' has no sentence that says so to people", line);
    if (claim.outcome == ClaimOutcome::loses && trim(knob.loses).empty())
      add(where, what + ": 'loses' has no sentence that says so to people", line);
    for (std::size_t other = 0; other < c; ++other)
      if (knob.claims[other].value == claim.value && knob.claims[other].outcome == claim.outcome &&
          knob.claims[other].where == claim.where)
        add(where, what + " stands twice; keep one", line);
    const auto condition = claim_condition(claim);
    if (!condition) {
      add(where, fmt::format("{}: where: {}", what, condition.error().message()), line);
      return;
    }
    const auto facts = claim_facts();
    for (const auto& name : condition->variables()) {
      const bool fact = name.starts_with("device.");
      if (knob_named(name) || (fact && std::find(facts.begin(), facts.end(), name) == facts.end()))
        add(where,
            fmt::format("{}: where: column {}: '{}' is not told by race records{}", what,
                        condition->column_of(name), name, fact ? did_you_mean(name, facts) : ""),
            line);
    }
  }

  bool knob_named(std::string_view name) const { return lattice_.knob(name) != nullptr; }

  void check_options(const Knob& knob, const std::string& where) {
    const bool option =
        std::find(knob.applies.begin(), knob.applies.end(), Applies::option) != knob.applies.end();
    for (const auto& entry : knob.options)
      if (entry.first >= knob.values.size())
        add(where, fmt::format("an option for value number {}, and there is none", entry.first), knob.line);
    if (!option) {
      if (!knob.options.empty())
        add(where, "it has compiler options, but does not apply as an option", knob.line);
      return;
    }
    if (knob.options.empty()) add(where, "applies as an option, and no value has one; state them", knob.line);
  }

  void check_names() {
    if (const std::string name = internal::ambiguous_name(lattice_); !name.empty()) {
      names_unique_ = false;
      add("variant '" + name + "'",
          name == "base" ? "a tag is 'base', the name of the default point; choose another"
                         : "two points have this name; make the tags differ",
          0);
    }
  }

  void check_strictly_better() {
    std::set<std::string> names;
    for (const auto& entry : lattice_.strictly_better) {
      const std::string where = "strictly better '" + entry.name + "'";
      if (!names.insert(entry.name).second) add(where, "listed twice; keep one", 0);
      if (trim(entry.reason).empty()) add(where, "no reason says why it has no downside", 0);
      if (lattice_.knob(entry.name) != nullptr)
        add(where, "it is a knob too; what has a downside leaves this list, what has none leaves the knobs",
            0);
    }
  }

  std::vector<std::string> knob_names() const {
    std::vector<std::string> names;
    for (const auto& knob : lattice_.knobs) names.push_back(knob.name);
    return names;
  }

  void check_variables(const Expression& expression, const std::string& where, int line) {
    auto candidates = knob_names();
    candidates.insert(candidates.end(), options_.known_names.begin(), options_.known_names.end());
    for (const auto& name : expression.variables())
      if (std::find(candidates.begin(), candidates.end(), name) == candidates.end())
        add(where,
            fmt::format("column {}: '{}' is neither a knob, nor a problem parameter, nor a device fact{}",
                        expression.column_of(name), name, did_you_mean(name, candidates)),
            line);
  }

  void check_requirement(const Knob& knob) {
    if (trim(knob.requires_text).empty()) return;
    const std::string where = "requires of knob '" + knob.name + "'";
    const auto parsed = Expression::parse(knob.requires_text);
    if (!parsed) {
      unsound(where, parsed.error().message(), knob.line);
    } else {
      check_variables(*parsed, where, knob.line);
    }
  }

  void check_catalogue(bool constraints_known) {
    if (!lattice_.catalogue.empty() && lattice_.catalogue.front() != "base")
      add("catalogue", fmt::format("it begins with '{}'; base comes first", lattice_.catalogue.front()), 0);
    std::set<std::string> names;
    for (const auto& name : lattice_.catalogue) {
      const std::string where = "catalogue entry '" + name + "'";
      if (!names.insert(name).second) add(where, "listed twice; keep one", 0);
      const auto point = parse_variant(lattice_, name);
      if (!point) {
        add(where, point.error().message(), 0);
      } else if (constraints_known && name != "base") {
        check_constraints(*point, where);
      }
    }
  }

  /// The constraints alone: what a knob requires depends on the card, not on the lattice.
  bool check_constraints(const Point& point, const std::string& where) {
    Lattice free = lattice_;
    for (auto& knob : free.knobs) knob.requires_text.clear();
    bool valid = true;
    for (const auto& constraint : lattice_.constraints) {
      free.constraints = {constraint};
      const auto why = free.why_invalid(point, options_.facts);
      if (why && why->empty()) continue;
      valid = false;
      add(where, why ? *why : why.error().message(), constraint.line);
    }
    return valid;
  }

  bool check_base() { return check_constraints(lattice_.base(), "base"); }

  /// What needs all valid points: that they can be enumerated, reached, and that both ways to tell a valid
  /// point agree.
  void check_points() {
    const auto space = Space::build(lattice_, options_.facts);
    if (!space) {
      add("lattice", "its valid points cannot be enumerated: " + space.error().message(), 0);
      return;
    }
    check_agreement(*space);
    const auto reach = internal::reachability(lattice_, options_.facts, kMostWalkedPoints);
    if (!reach) {
      add("lattice", "it is not proved that base reaches every valid point: " + reach.error().message(), 0);
    } else if (reach->unreachable > 0) {
      add("variant '" + reach->example + "'",
          fmt::format("it and {} others cannot be reached from base by changing one knob at a time; declare "
                      "which of {} "
                      "are coupled",
                      reach->unreachable - 1, join(reach->knobs, ", ")),
          0);
    }
  }

  void check_agreement(const Space& space) {
    Random random(1, "lint");
    for (int i = 0; i < kRandomPoints; ++i) {
      Point point;
      for (const auto& knob : lattice_.knobs)
        point.indices.push_back(static_cast<std::uint32_t>(random.below(knob.values.size())));
      const std::string name = variant_name(lattice_, point);
      const auto valid = lattice_.satisfies(point, options_.facts);
      if (!valid || *valid != space.index_of(point).has_value()) {
        add("variant '" + name + "'",
            "the constraint checker and the enumerator disagree on it: a defect of Furlong", 0);
        return;
      }
      if (const auto parsed = parse_variant(lattice_, name); names_unique_ && (!parsed || *parsed != point)) {
        add("variant '" + name + "'", "the name does not parse back to its point", 0);
        return;
      }
    }
  }

  const Lattice& lattice_;
  const LintOptions& options_;
  bool sound_ = true;
  bool names_unique_ = true;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> lint(const Lattice& lattice, const LintOptions& options) {
  return Linter(lattice, options).run();
}

}  // namespace furlong::lattice
