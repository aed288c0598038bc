#include "furlong/shard/executor/metamath/internal/parser.h"

#include <algorithm>
#include <limits>

namespace furlong::shard::metamath {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

bool is_label(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool is_math_symbol(std::string_view token) { return token.find('$') == std::string_view::npos; }

}  // namespace

Place Parser::place(std::string_view token) const {
  const std::string& text = database_.sources_[source_].text;
  return {source_, static_cast<std::uint32_t>(token.data() - text.data())};
}

Error Parser::wrong(std::string_view token, std::string message) const {
  return fail(Code::invalid, "{}: {}", database_.at(place(token)), message);
}

Error Parser::wrong(std::string_view token, std::string_view label, std::string message) const {
  return fail(Code::invalid, "{}: {}: {}", database_.at(place(token)), label, message);
}

Error Parser::at_lexer(const Lexer& lexer, Error error) const {
  const Place where{source_, static_cast<std::uint32_t>(lexer.error_offset())};
  return fail(error.code(), "{}: {}", database_.at(where), error.message());
}

Result<std::string_view> Parser::next(Lexer& lexer, std::string_view label, std::string_view inside) {
  Result<std::string_view> token = lexer.next();
  if (!token) return at_lexer(lexer, std::move(token).error());
  if (token->empty()) {
    const Place where{source_, static_cast<std::uint32_t>(lexer.offset())};
    return fail(Code::invalid, "{}: {}{}the text ends inside of a {} statement", database_.at(where), label,
                label.empty() ? "" : ": ", inside);
  }
  return token;
}

Status Parser::read_file(const std::filesystem::path& file) {
  if (database_.sources_.empty()) folder_ = file.parent_path();
  if (!included_.insert(file.lexically_normal().string()).second) return {};
  FURLONG_TRY(std::string text, files_->read(file, kMostBytes));
  return read_text(file.string(), std::move(text));
}

Status Parser::read_text(std::string name, std::string text) {
  if (text.size() > kMostBytes) return fail(Code::invalid, "{}: over 4 GiB", name);
  database_.sources_.push_back({std::move(name), std::move(text)});
  const std::uint32_t outer = source_;
  source_ = static_cast<std::uint32_t>(database_.sources_.size() - 1);
  FURLONG_CHECK(source(source_));
  source_ = outer;
  return {};
}

Status Parser::source(std::uint32_t index) {
  const std::string_view text = database_.sources_[index].text;
  if (const std::size_t at = first_foreign_byte(text); at != text.size())
    return fail(Code::invalid, "{}: byte 0x{:02x} is neither printable ASCII nor white space",
                database_.at({index, static_cast<std::uint32_t>(at)}), static_cast<unsigned char>(text[at]));
  Lexer lexer(text);
  for (;;) {
    Result<std::string_view> token = lexer.next();
    if (!token) return at_lexer(lexer, std::move(token).error());
    if (token->empty()) return {};
    FURLONG_CHECK(statement(lexer, *token));
  }
}

Status Parser::statement(Lexer& lexer, std::string_view token) {
  if (token[0] != '$') return labelled(lexer, token);
  ++clock_;
  if (token == "${") {
    scopes_.push_back(
        {active_variables_.size(), active_hypotheses_.size(), active_disjoint_.size(), place(token)});
    return {};
  }
  if (token == "$}") return close_scope(token);
  if (token == "$c") return constants(lexer, token);
  if (token == "$v") return variables(lexer);
  if (token == "$d") return disjoint(lexer, token);
  if (token == "$[") return include(lexer, token);
  if (token == "$f" || token == "$e" || token == "$a" || token == "$p")
    return wrong(token, fmt::format("a {} statement without a label", token));
  return wrong(token, fmt::format("'{}' begins no statement", token));
}

Status Parser::labelled(Lexer& lexer, std::string_view label) {
  ++clock_;
  if (!is_label(label))
    return wrong(label, fmt::format("'{}' is no label: letters, digits, '-', '_' and '.' make one", label));
  FURLONG_TRY(const std::string_view keyword, next(lexer, label, "labelled"));
  if (keyword == "$f") return floating(lexer, label);
  if (keyword == "$e") return essential(lexer, label);
  if (keyword == "$a") return assertion(lexer, label, false);
  if (keyword == "$p") return assertion(lexer, label, true);
  return wrong(keyword, label, fmt::format("'{}' where $f, $e, $a or $p must follow the label", keyword));
}

Status Parser::finish() {
  if (scopes_.empty()) return {};
  return fail(Code::invalid, "{}: this '${{' is never closed: '$}}' is missing",
              database_.at(scopes_.back().opened));
}

Status Parser::close_scope(std::string_view keyword) {
  if (scopes_.empty()) return wrong(keyword, "'$}' closes no '${'");
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  for (std::size_t i = scope.hypotheses; i < active_hypotheses_.size(); ++i) {
    Hypothesis& hypothesis = database_.hypotheses_[active_hypotheses_[i]];
    hypothesis.closed = clock_;
    if (!hypothesis.essential) states_[hypothesis.variable].floating = 0;
  }
  for (std::size_t i = scope.variables; i < active_variables_.size(); ++i)
    states_[active_variables_[i]].active = false;
  active_variables_.resize(scope.variables);
  active_hypotheses_.resize(scope.hypotheses);
  active_disjoint_.resize(scope.disjoint);
  return {};
}

Result<Symbol> Parser::declare(std::string_view name, bool variable) {
  if (!is_math_symbol(name)) return wrong(name, fmt::format("'{}' is no symbol: it has a '$'", name));
  if (database_.labels_.find(name))
    return wrong(name, fmt::format("the symbol '{}' is a label already", name));
  if (const auto known = database_.symbol_names_.find(name)) {
    const bool was_variable = database_.symbols_[*known].variable;
    if (was_variable && variable && !states_[*known].active) return *known;
    return wrong(name, fmt::format("'{}' is a {} already", name, was_variable ? "variable" : "constant"));
  }
  const auto symbol = static_cast<Symbol>(database_.symbols_.size());
  database_.symbol_names_.insert(name, symbol);
  database_.symbols_.push_back({name, variable});
  states_.emplace_back();
  return symbol;
}

Status Parser::constants(Lexer& lexer, std::string_view keyword) {
  if (!scopes_.empty()) return wrong(keyword, "$c stands in the outermost scope only");
  for (std::size_t count = 0;; ++count) {
    FURLONG_TRY(const std::string_view token, next(lexer, "", "$c"));
    if (token == "$.") {
      if (count == 0) return wrong(keyword, "$c without a symbol");
      return {};
    }
    FURLONG_TRY(const Symbol symbol, declare(token, false));
    states_[symbol].active = true;
  }
}

Status Parser::variables(Lexer& lexer) {
  for (std::size_t count = 0;; ++count) {
    FURLONG_TRY(const std::string_view token, next(lexer, "", "$v"));
    if (token == "$.") {
      if (count == 0) return wrong(token, "$v without a symbol");
      return {};
    }
    FURLONG_TRY(const Symbol symbol, declare(token, true));
    states_[symbol].active = true;
    active_variables_.push_back(symbol);
  }
}

Status Parser::disjoint(Lexer& lexer, std::string_view keyword) {
  const auto begin = pool(database_.cells_.size());
  ++stamp_;
  for (;;) {
    FURLONG_TRY(const std::string_view token, next(lexer, "", "$d"));
    if (token == "$.") break;
    const auto symbol = database_.symbol_names_.find(token);
    if (!symbol || !database_.symbols_[*symbol].variable || !states_[*symbol].active)
      return wrong(token, fmt::format("'{}' in $d is no active variable", token));
    if (states_[*symbol].marked == stamp_) return wrong(token, fmt::format("'{}' twice in one $d", token));
    states_[*symbol].marked = stamp_;
    database_.cells_.push_back(*symbol);
  }
  const auto count = pool(database_.cells_.size()) - begin;
  if (count < 2) return wrong(keyword, "$d takes two variables or more");
  active_disjoint_.push_back(pool(database_.disjoint_statements_.size()));
  database_.disjoint_statements_.push_back({begin, count});
  return {};
}

Status Parser::include(Lexer& lexer, std::string_view keyword) {
  if (!scopes_.empty()) return wrong(keyword, "$[ stands in the outermost scope only");
  FURLONG_TRY(const std::string_view name, next(lexer, "", "$["));
  FURLONG_TRY(const std::string_view end, next(lexer, "", "$["));
  if (end != "$]" || !is_math_symbol(name))
    return wrong(name, "an inclusion is '$[ FILE $]', the file's name without blanks and '$'");
  if (files_ == nullptr) return wrong(keyword, fmt::format("'{}' cannot be included here", name));
  const std::string from = database_.at(place(keyword));  // before the other file is the one at hand
  FURLONG_CHECK_DOING(read_file(folder_ / std::string(name)), "included in {}", from);
  return {};
}

Status Parser::name_label(std::string_view label, std::uint32_t value) {
  if (database_.symbol_names_.find(label)) return wrong(label, label, "this label is a symbol already");
  if (!database_.labels_.insert(label, value)) return wrong(label, label, "this label is in use already");
  return {};
}

Result<Range> Parser::symbols(Lexer& lexer, std::string_view label, std::string_view statement,
                              std::string_view end) {
  const auto begin = pool(database_.cells_.size());
  for (;;) {
    FURLONG_TRY(const std::string_view token, next(lexer, label, statement));
    if (token == end) break;
    const auto symbol = database_.symbol_names_.find(token);
    if (!symbol) {
      if (token[0] == '$')
        return wrong(token, label, fmt::format("'{}' where '{}' must end the symbols", token, end));
      return wrong(token, label, fmt::format("the symbol '{}' was not declared", token));
    }
    const bool variable = database_.symbols_[*symbol].variable;
    if (!states_[*symbol].active)
      return wrong(token, label, fmt::format("the variable '{}' is not active here", token));
    if (database_.cells_.size() == begin && variable)
      return wrong(token, label, fmt::format("the first symbol, '{}', is no constant", token));
    if (variable && states_[*symbol].floating == 0)
      return wrong(token, label, fmt::format("the variable '{}' has no type: no $f is active", token));
    database_.cells_.push_back(*symbol);
  }
  const auto count = pool(database_.cells_.size()) - begin;
  if (count == 0) return wrong(label, label, fmt::format("{} without a symbol", statement));
  return Range{begin, count};
}

Status Parser::floating(Lexer& lexer, std::string_view label) {
  Hypothesis hypothesis{.label = label, .expression = {}, .declared = clock_, .place = place(label)};
  hypothesis.expression.begin = pool(database_.cells_.size());
  hypothesis.expression.count = 2;
  for (const bool variable : {false, true}) {
    FURLONG_TRY(const std::string_view token, next(lexer, label, "$f"));
    const auto symbol = database_.symbol_names_.find(token);
    if (!symbol || database_.symbols_[*symbol].variable != variable || !states_[*symbol].active)
      return wrong(token, label,
                   fmt::format("'{}' in $f is no active {}", token, variable ? "variable" : "constant"));
    if (variable && states_[*symbol].floating != 0)
      return wrong(token, label, fmt::format("the variable '{}' has a type already", token));
    database_.cells_.push_back(*symbol);
    hypothesis.variable = *symbol;
  }
  FURLONG_TRY(const std::string_view end, next(lexer, label, "$f"));
  if (end != "$.") return wrong(end, label, fmt::format("'{}' where '$.' must end $f", end));
  const auto index = pool(database_.hypotheses_.size());
  FURLONG_CHECK(name_label(label, index * 2));
  states_[hypothesis.variable].floating = index + 1;
  database_.hypotheses_.push_back(hypothesis);
  active_hypotheses_.push_back(index);
  return {};
}

Status Parser::essential(Lexer& lexer, std::string_view label) {
  Hypothesis hypothesis{
      .label = label, .essential = true, .expression = {}, .declared = clock_, .place = place(label)};
  FURLONG_TRY(hypothesis.expression, symbols(lexer, label, "$e", "$."));
  const auto index = pool(database_.hypotheses_.size());
  FURLONG_CHECK(name_label(label, index * 2));
  database_.hypotheses_.push_back(hypothesis);
  active_hypotheses_.push_back(index);
  return {};
}

Status Parser::assertion(Lexer& lexer, std::string_view label, bool theorem) {
  Assertion made{.label = label,
                 .theorem = theorem,
                 .hypotheses = {},
                 .distinct = {},
                 .conclusion = {},
                 .scopes = {},
                 .proof = {},
                 .declared = clock_,
                 .place = place(label)};
  FURLONG_TRY(made.conclusion, symbols(lexer, label, theorem ? "$p" : "$a", theorem ? "$=" : "$."));
  if (theorem) {
    Result<std::string_view> proof = lexer.until_end_of_proof();
    if (!proof) {
      Error error = at_lexer(lexer, std::move(proof).error());
      return fail(error.code(), "{} (the proof of {})", error.message(), label);
    }
    made.proof = *proof;
    made.scopes = {pool(database_.in_force_.size()), pool(active_disjoint_.size())};
    database_.in_force_.insert(database_.in_force_.end(), active_disjoint_.begin(), active_disjoint_.end());
    ++database_.theorems_;
  }
  FURLONG_CHECK(name_label(label, pool(database_.assertions_.size()) * 2 + 1));
  make_frame(made);
  database_.assertions_.push_back(made);
  return {};
}

void Parser::mark(Range expression) {
  for (const Symbol symbol : database_.expression(expression)) states_[symbol].marked = stamp_;
}

void Parser::make_frame(Assertion& assertion) {
  ++stamp_;
  mark(assertion.conclusion);
  for (const std::uint32_t index : active_hypotheses_)
    if (database_.hypotheses_[index].essential) mark(database_.hypotheses_[index].expression);

  assertion.hypotheses.begin = pool(database_.frames_.size());
  for (const std::uint32_t index : active_hypotheses_) {
    const Hypothesis& hypothesis = database_.hypotheses_[index];
    if (hypothesis.essential || states_[hypothesis.variable].marked == stamp_)
      database_.frames_.push_back(index);
  }
  assertion.hypotheses.count = pool(database_.frames_.size()) - assertion.hypotheses.begin;

  std::vector<Distinct>& pairs = database_.distinct_;
  assertion.distinct.begin = pool(pairs.size());
  for (const std::uint32_t index : active_disjoint_) {
    const Expression set = database_.expression(database_.disjoint_statements_[index]);
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = i + 1; j < set.size(); ++j)
        if (states_[set[i]].marked == stamp_ && states_[set[j]].marked == stamp_)
          pairs.push_back({std::min(set[i], set[j]), std::max(set[i], set[j])});
  }
  const auto begin = pairs.begin() + assertion.distinct.begin;
  std::sort(begin, pairs.end());
  pairs.erase(std::unique(begin, pairs.end()), pairs.end());
  assertion.distinct.count = pool(pairs.size()) - assertion.distinct.begin;
}

}  // namespace furlong::shard::metamath
