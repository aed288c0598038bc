// Names in expressions: what is defined, what a derived name stands on, and cycles.
#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/program/instance.h"
#include "furlong/program/internal/draft.h"
#include "furlong/program/internal/substitute.h"

namespace furlong::program::internal {
namespace {

constexpr std::size_t kLongestExpression = 16384;  // lets put into each other can double at every step

const lattice::Expression* find_let(const Program& program, std::string_view name) {
  for (const auto& [let, expression] : program.lets)
    if (let == name) return &expression;
  return nullptr;
}

bool is_problem(const Program& program, std::string_view name) {
  return std::any_of(program.problem.begin(), program.problem.end(),
                     [&](const auto& parameter) { return parameter.first == name; });
}

bool is_device_fact(std::string_view name) {
  const auto facts = device_fact_names();
  return std::find(facts.begin(), facts.end(), name) != facts.end();
}

bool is_knob(const Draft& draft, std::string_view name) {
  return std::any_of(draft.knobs.begin(), draft.knobs.end(),
                     [&](const auto& k) { return k.knob.name == name; });
}

std::vector<std::string> known_names(const Draft& draft, Uses uses) {
  std::vector<std::string> names;
  if (uses == Uses::knobs_of_edition)
    for (const auto& k : draft.knobs) names.push_back(k.knob.name);
  for (const auto& [name, value] : draft.program.problem) names.push_back(name);
  for (const auto& [name, expression] : draft.program.lets) names.push_back(name);
  for (const auto& name : device_fact_names()) names.push_back(name);
  return names;
}

// The knobs behind a name: itself, or those that a let uses.
std::set<std::string> knobs_behind(const Draft& draft, const std::string& name) {
  if (is_knob(draft, name)) return {name};
  const auto found = draft.let_knobs.find(name);
  return found == draft.let_knobs.end() ? std::set<std::string>() : found->second;
}

Place place_of_name(const Draft& draft, const PlacedExpression& e, const std::string& name) {
  if (e.node == nullptr) return {};
  return draft.reader.inside(*e.node, e.expression.column_of(name));
}

std::string through(const std::string& name, const std::string& knob) {
  return name == knob ? fmt::format("knob '{}'", knob)
                      : fmt::format("'{}', which uses knob '{}'", name, knob);
}

Status check_name(const Draft& draft, const PlacedExpression& e, const std::string& name, Uses uses,
                  std::string_view language) {
  const Program& program = draft.program;
  if (is_problem(program, name) || is_device_fact(name)) return {};
  if (!is_knob(draft, name) && find_let(program, name) == nullptr)
    return draft.reader.error(place_of_name(draft, e, name), "{}: '{}' is not defined{}", e.what, name,
                              Reader::choices(name, known_names(draft, uses)));
  for (const std::string& knob : knobs_behind(draft, name)) {
    if (uses == Uses::problem)
      return draft.reader.error(place_of_name(draft, e, name),
                                "{} must be the same for every variant, but it uses {}", e.what,
                                through(name, knob));
    for (const Edition& edition : program.editions) {
      if (!language.empty() && language != edition.language) continue;
      if (!draft.knob_exists(knob, edition.language))
        return draft.reader.error(place_of_name(draft, e, name),
                                  "{} uses {}, which does not exist in language {}", e.what,
                                  through(name, knob), edition.language);
    }
  }
  return {};
}

// Depth-first over the lets; `path` is the chain being followed.
struct LetWalk {
  Draft& draft;
  std::vector<std::size_t> order;
  std::vector<int> state;  // 0 new, 1 on the path, 2 done
  std::vector<std::size_t> path;

  std::optional<std::size_t> index(std::string_view name) const {
    for (std::size_t i = 0; i < draft.program.lets.size(); ++i)
      if (draft.program.lets[i].first == name) return i;
    return std::nullopt;
  }

  Error cycle(std::size_t back_to) const {
    std::string chain;
    const auto start = std::find(path.begin(), path.end(), back_to);
    for (auto i = start; i != path.end(); ++i) chain += draft.program.lets[*i].first + " -> ";
    chain += draft.program.lets[back_to].first;
    return draft.reader.error(place_of_key(*draft.lets[back_to].node), "[let] goes in a circle: {}", chain);
  }

  Status visit(std::size_t i) {
    if (state[i] == 2) return {};
    if (state[i] == 1) return cycle(i);
    state[i] = 1;
    path.push_back(i);
    auto& [name, expression] = draft.program.lets[i];
    std::set<std::string> knobs;
    for (const std::string& used : expression.variables()) {
      if (const auto other = index(used)) {
        FURLONG_CHECK(visit(*other));
      } else {
        FURLONG_CHECK(check_defined(i, used));
      }
      knobs.merge(knobs_behind(draft, used));
    }
    draft.let_knobs[name] = std::move(knobs);
    path.pop_back();
    state[i] = 2;
    order.push_back(i);
    return {};
  }

  // Whether its language has the knob is asked where the let is used.
  Status check_defined(std::size_t i, const std::string& used) const {
    if (is_problem(draft.program, used) || is_device_fact(used) || is_knob(draft, used)) return {};
    return draft.reader.error(place_of_name(draft, draft.lets[i], used), "{}: '{}' is not defined{}",
                              draft.lets[i].what, used,
                              Reader::choices(used, known_names(draft, Uses::knobs_of_edition)));
  }
};

}  // namespace

const std::vector<std::string>& language_words() {
  static const std::vector<std::string> words = {"cuda", "opencl", "host", "metal"};
  return words;
}

bool Draft::knob_exists(std::string_view knob, std::string_view language) const {
  for (const KnobDraft& k : knobs) {
    if (k.knob.name != knob) continue;
    const auto& languages = k.knob.languages;
    return languages.empty() || std::find(languages.begin(), languages.end(), language) != languages.end();
  }
  return false;
}

Status check_names(const Draft& draft, const PlacedExpression& e, Uses uses, std::string_view language) {
  for (const std::string& name : e.expression.variables())
    FURLONG_CHECK(check_name(draft, e, name, uses, language));
  return {};
}

Status check_placeholders(const Draft& draft, const TomlNode& node, std::string_view text,
                          std::string_view language) {
  for (const std::string& name : placeholders(text)) {
    if (is_problem(draft.program, name) || draft.knob_exists(name, language)) continue;
    return draft.reader.error(
        node, "'{{{}}}' stands for a knob or a problem parameter, but '{}' is none in language {}{}", name,
        name, language, did_you_mean(name, known_names(draft, Uses::knobs_of_edition)));
  }
  return {};
}

Status resolve_lets(Draft& draft) {
  const std::size_t count = draft.program.lets.size();
  LetWalk walk{.draft = draft, .order = {}, .state = std::vector<int>(count), .path = {}};
  if (count > 200)  // the walk recurses once a let
    return draft.reader.error(place_of_key(*draft.lets[200].node),
                              "[let] has {} entries; at most 200 are read", count);
  for (std::size_t i = 0; i < count; ++i) FURLONG_CHECK(walk.visit(i));
  auto lets = std::move(draft.program.lets);
  auto placed = std::move(draft.lets);
  draft.program.lets.clear();
  draft.lets.clear();
  for (const std::size_t i : walk.order) {
    draft.program.lets.push_back(std::move(lets[i]));
    draft.lets.push_back(std::move(placed[i]));
  }
  return {};
}

Result<lattice::Expression> without_lets(const Draft& draft, const PlacedExpression& e) {
  std::map<std::string, std::string> replacement;
  std::set<std::string> needed;
  for (const std::string& name : e.expression.variables())
    if (find_let(draft.program, name) != nullptr) needed.insert(name);
  if (needed.empty()) return e.expression;
  for (auto let = draft.program.lets.rbegin(); let != draft.program.lets.rend(); ++let)
    if (needed.contains(let->first))
      for (const std::string& used : let->second.variables()) needed.insert(used);
  for (const auto& [name, expression] : draft.program.lets) {  // each uses only earlier ones
    if (!needed.contains(name)) continue;
    replacement[name] = "(" + substitute_names(expression.text(), replacement) + ")";
    if (replacement[name].size() > kLongestExpression)
      return draft.reader.error(*e.node, "{} is too long once [let] '{}' is put in", e.what, name);
  }
  auto parsed = lattice::Expression::parse(substitute_names(e.expression.text(), replacement));
  if (!parsed) return draft.reader.error(*e.node, "{} with [let] put in: {}", e.what, parsed.error().text());
  return *std::move(parsed);
}

}  // namespace furlong::program::internal
