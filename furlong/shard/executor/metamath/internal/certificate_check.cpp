#include "furlong/shard/executor/metamath/internal/certificate_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "furlong/base/random.h"
#include "furlong/shard/executor/metamath/internal/certificate_read.h"

namespace furlong::shard::metamath {

using namespace verifying;

namespace {

using Apart = std::set<std::pair<Word, Word>>;

std::pair<Word, Word> sorted(Word a, Word b) { return a < b ? std::pair{a, b} : std::pair{b, a}; }

class Judge {
 public:
  Judge(std::span<const Unit> units, ItemSource& items, const VerifyOptions& options)
      : units_(units), items_(items), options_(options) {}

  Status judge(ByteView body) {
    Cursor rows;
    FURLONG_TRY(certificate_, read_certificate(body, rows));
    FURLONG_CHECK(rules());
    FURLONG_CHECK(read_rows(rows));
    FURLONG_CHECK(root());
    FURLONG_CHECK(judge_rows());
    return judge_units();
  }

 private:
  static Error wrong(std::string message) { return {Code::mismatch, std::move(message)}; }

  Status stopped() const {
    if (options_.stop.stop_requested()) return fail(Code::timeout, "stopped while verifying a certificate");
    return {};
  }

  /// A rule is a statement that some unit owns or refers to.
  Status rules() {
    std::set<Key> known;
    for (const Unit& unit : units_) {
      known.insert(unit.items.begin(), unit.items.end());
      known.insert(unit.references.begin(), unit.references.end());
    }
    for (const Key& key : certificate_.rules) {
      if (!known.contains(key))
        return wrong(
            fmt::format("the certificate uses the statement {}, which is not the claim's", key.brief()));
      FURLONG_TRY(const ByteView bytes, items_.item(key));
      FURLONG_TRY(Statement statement, read_statement(bytes, certificate_.symbols));
      if (!rule_places_.emplace(key, static_cast<Word>(statements_.size())).second)
        return wrong("the certificate lists a statement twice");
      statements_.push_back(std::move(statement));
    }
    return {};
  }

  Status read_rows(Cursor& in) {
    const Word count = in.many();
    certificate_.rows.reserve(count);
    for (Word i = 0; i < count && !in.broken; ++i) {
      Certificate::Row row;
      row.rule = in.below(statements_.size() + 2);
      row.result = in.below(certificate_.expressions.size());
      row.parents = certificate_.parents.size();
      for (std::size_t j = parent_count(row); j > 0 && !in.broken; --j) {
        const Word back = in.below(std::uint64_t{i} + 1);
        if (back == 0) in.broken = true;
        certificate_.parents.push_back(i - back);
      }
      certificate_.rows.push_back(row);
    }
    if (in.broken || !in.left.empty()) return wrong("the certificate's rows are torn");
    std::vector<bool> stated(certificate_.expressions.size());
    for (const Certificate::Row& row : certificate_.rows) stated[row.result] = true;
    if (std::ranges::count(stated, false) > 0)
      return wrong("the certificate has an expression that no row has");
    return {};
  }

  std::size_t parent_count(const Certificate::Row& row) const {
    return row.rule < 2 ? 0 : statements_[row.rule - 2].premises.size();
  }
  const Words& result(Word row) const { return certificate_.expressions[certificate_.rows[row].result]; }

  Status root() {
    std::vector<Digest> leaves{blake2b_256(certificate_.head)};
    leaves.reserve(certificate_.rows.size() + 1);
    Words leaf;
    for (Word i = 0; i < certificate_.rows.size(); ++i) {
      if (i % 4096 == 0) FURLONG_CHECK(stopped());
      const Certificate::Row& row = certificate_.rows[i];
      const auto count = static_cast<Word>(parent_count(row));
      leaf.assign({row.rule, count});
      const auto first = certificate_.parents.begin() + static_cast<std::ptrdiff_t>(row.parents);
      leaf.insert(leaf.end(), first, first + count);
      leaf.insert(leaf.end(), result(i).begin(), result(i).end());
      leaves.push_back(blake2b_256(
          ByteView(reinterpret_cast<const std::uint8_t*>(leaf.data()), leaf.size() * sizeof(Word))));
    }
    if (merkle_root(leaves) != certificate_.root)
      return wrong("the certificate's root is not that of its rows");
    return {};
  }

  Status judge_rows() {
    Random random(options_.seed, "certificate rows");
    demand_of_.resize(certificate_.rows.size());
    for (Word i = 0; i < certificate_.rows.size(); ++i) {
      if (i % 4096 == 0) FURLONG_CHECK(stopped());
      if (options_.sample < 1 && random.uniform() >= options_.sample) continue;
      const std::string fault = judge_row(i);
      if (!fault.empty()) return wrong(fmt::format("row {} of the certificate: {}", i, fault));
    }
    return {};
  }

  /// What is wrong with it, or nothing.
  std::string judge_row(Word number) {
    const Certificate::Row& row = certificate_.rows[number];
    const Words& states = result(number);
    if (row.rule == 1) return {};  // whether it is a hypothesis is for each unit to say
    if (row.rule == 0) {
      const bool typed = states.size() == 2 && certificate_.symbols.variable(states[1]) &&
                         certificate_.symbols.rows[states[1]].second == states[0];
      return typed ? "" : "it gives a variable a type that is not its own";
    }
    const Statement& rule = statements_[row.rule - 2];
    Apart demand;
    std::map<Word, Words> values;
    for (std::size_t i = 0; i < rule.premises.size(); ++i) {
      const Statement::Premise& premise = rule.premises[i];
      if (premise.variable == kConstant) continue;
      const Words& given = result(certificate_.parents[row.parents + i]);
      if (given[0] != premise.expression[0]) return fmt::format("parent {} has another type", i);
      values[premise.variable] = Words(given.begin() + 1, given.end());
    }
    for (std::size_t i = 0; i < rule.premises.size(); ++i) {
      const Statement::Premise& premise = rule.premises[i];
      if (premise.variable != kConstant) continue;
      if (replaced(premise.expression, values) != result(certificate_.parents[row.parents + i]))
        return fmt::format("parent {} is not the rule's hypothesis", i);
    }
    if (replaced(rule.conclusion, values) != states) return "the rule gives something else";
    for (const auto& [a, b] : rule.apart)
      for (const Word left : values[a])
        for (const Word right : values[b]) {
          if (!certificate_.symbols.variable(left) || !certificate_.symbols.variable(right)) continue;
          if (left == right) return "two variables that must be distinct are not";
          demand.insert(sorted(left, right));
        }
    if (!demand.empty()) {
      demands_.push_back(std::move(demand));
      demand_of_[number] = static_cast<Word>(demands_.size());
    }
    return {};
  }

  Words replaced(const Words& pattern, const std::map<Word, Words>& values) const {
    Words out;
    for (const Word symbol : pattern) {
      const auto value = values.find(symbol);
      if (value == values.end())
        out.push_back(symbol);
      else
        out.insert(out.end(), value->second.begin(), value->second.end());
    }
    return out;
  }

  Status judge_units() {
    std::map<Key, std::uint64_t> proved;
    for (const auto& [unit, row] : certificate_.units) {
      if (row > certificate_.rows.size() || !proved.emplace(unit, row).second)
        return wrong("the certificate's list of units is wrong");
    }
    if (proved.size() != units_.size()) return wrong("the certificate is not of these units");
    last_seen_.assign(certificate_.rows.size(), 0);
    Word stamp = 0;
    for (const Unit& unit : units_) {
      FURLONG_CHECK(stopped());
      const auto found = proved.find(unit.key);
      if (found == proved.end()) return wrong(fmt::format("the certificate leaves out {}", unit.name));
      FURLONG_CHECK_DOING(judge_unit(unit, found->second, ++stamp), "{}", unit.name);
    }
    return {};
  }

  Status judge_unit(const Unit& unit, std::uint64_t row, Word stamp) {
    if (unit.items.empty()) return wrong("it owns nothing");
    FURLONG_TRY(const ByteView last, items_.item(unit.items.back()));
    if (last.empty() || last[0] != 'P') {  // axioms: each is a statement, and nothing is to be proved
      if (row != 0 || !unit.references.empty()) return wrong("axioms are proved by nothing");
      for (const Key& key : unit.items)
        if (!rule_places_.contains(key)) return wrong("it owns what is no statement of the certificate");
      return {};
    }
    if (row == 0) return wrong("nothing proves it");
    FURLONG_TRY(const ProofHead head, read_proof_head(last));
    const bool owned = unit.items.size() == 2 && unit.items[0] == head.statement;
    if (!owned && unit.items.size() != 1) return wrong("it owns more than a statement and its proof");
    const auto place = rule_places_.find(head.statement);
    if (place == rule_places_.end()) return wrong("its statement is not in the certificate");
    const Statement& statement = statements_[place->second];
    if (result(static_cast<Word>(row - 1)) != statement.conclusion)
      return wrong("another statement is proved");

    std::set<Words> granted;  // hypotheses of both kinds
    Apart apart(statement.apart.begin(), statement.apart.end());
    for (auto [a, b] : statement.apart) apart.insert(sorted(a, b));
    FURLONG_CHECK(grant(statement, head, granted, apart));
    std::set<Key> used;
    FURLONG_CHECK(follow(static_cast<Word>(row - 1), stamp, granted, apart, used));
    if (!owned) used.insert(head.statement);
    if (!std::ranges::equal(used, unit.references)) return wrong("its references are not what its rows use");
    return {};
  }

  Status grant(const Statement& statement, const ProofHead& head, std::set<Words>& granted,
               Apart& apart) const {
    Words variables;
    for (const auto& premise : statement.premises) {
      granted.insert(premise.expression);
      if (premise.variable != kConstant) variables.push_back(premise.variable);
    }
    for (const auto& [type, name] : head.extra) {
      const auto constant = certificate_.symbols.places.find({type, kConstant});
      if (constant == certificate_.symbols.places.end()) return wrong("a type is not in the certificate");
      const auto variable = certificate_.symbols.places.find({name, constant->second});
      if (variable == certificate_.symbols.places.end()) return wrong("a variable is not in the certificate");
      if (std::ranges::find(variables, variable->second) != variables.end()) return wrong("a variable twice");
      variables.push_back(variable->second);
      granted.insert({constant->second, variable->second});
    }
    const std::size_t own = variables.size() - head.extra.size();
    for (const auto& [a, b] : head.apart) {
      // What the statement's own variables must satisfy stands in the statement alone.
      if (a >= variables.size() || b >= variables.size() || std::max(a, b) < own || a == b)
        return wrong("its proof grants a pair of variables that it cannot");
      apart.insert(sorted(variables[a], variables[b]));
    }
    return {};
  }

  /// All that the row stands on.
  Status follow(Word from, Word stamp, const std::set<Words>& granted, const Apart& apart,
                std::set<Key>& used) {
    Words open{from};
    last_seen_[from] = stamp;
    while (!open.empty()) {
      const Word number = open.back();
      open.pop_back();
      const Certificate::Row& row = certificate_.rows[number];
      if (row.rule < 2 && !granted.contains(result(number)))
        return wrong(fmt::format("row {} is no hypothesis of it", number));
      if (row.rule >= 2) used.insert(certificate_.rules[row.rule - 2]);
      if (demand_of_[number] != 0 && !std::ranges::includes(apart, demands_[demand_of_[number] - 1]))
        return wrong(fmt::format("row {} needs variables to be distinct that need not be", number));
      for (std::size_t i = 0; i < parent_count(row); ++i) {
        const Word parent = certificate_.parents[row.parents + i];
        if (last_seen_[parent] == stamp) continue;
        last_seen_[parent] = stamp;
        open.push_back(parent);
      }
    }
    return {};
  }

  std::span<const Unit> units_;
  ItemSource& items_;
  const VerifyOptions& options_;
  Certificate certificate_;
  std::vector<Statement> statements_;
  std::map<Key, Word> rule_places_;
  Words demand_of_;             // per row: 0, or one more than its place in the next
  std::vector<Apart> demands_;  // variables that must be distinct
  Words last_seen_;
};

/// Units in an order in which each stands on earlier ones, or an error.
Status well_founded(std::span<const Unit> units) {
  std::map<Key, std::size_t> owners;
  for (std::size_t i = 0; i < units.size(); ++i)
    for (const Key& item : units[i].items)
      if (!owners.emplace(item, i).second)
        return fail(Code::mismatch, "{} and {} own the same item", units[owners[item]].name, units[i].name);
  std::vector<std::vector<std::size_t>> users(units.size());
  std::vector<std::size_t> waits(units.size(), 0);
  for (std::size_t i = 0; i < units.size(); ++i)
    for (const Key& reference : units[i].references)
      if (const auto owner = owners.find(reference); owner != owners.end()) {
        users[owner->second].push_back(i);
        ++waits[i];
      }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < units.size(); ++i)
    if (waits[i] == 0) ready.push_back(i);
  for (std::size_t next = 0; next < ready.size(); ++next)
    for (const std::size_t user : users[ready[next]])
      if (--waits[user] == 0) ready.push_back(user);
  if (ready.size() == units.size()) return {};
  const auto stuck = std::ranges::find_if(waits, [](std::size_t count) { return count > 0; });
  return fail(Code::mismatch, "{} is proved by way of itself",
              units[static_cast<std::size_t>(stuck - waits.begin())].name);
}

}  // namespace

Status check_certificate(ByteView body, std::span<const Unit> units, ItemSource& items,
                         const VerifyOptions& options) {
  return Judge(units, items, options).judge(body);
}

Result<Claim> claim_of(std::span<const Unit> units) {
  FURLONG_TRY(const Claim claim, claim_over(units));
  FURLONG_CHECK(well_founded(units));
  return claim;
}

}  // namespace furlong::shard::metamath
