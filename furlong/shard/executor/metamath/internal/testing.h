#pragma once
// A small formal system, a store in memory, and proofs made at random: what the tests of this part share.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor.h"
#include "furlong/shard/executor/metamath/database.h"
#include "furlong/shard/executor/metamath/internal/items.h"
#include "furlong/shard/executor/metamath/make_store.h"
#include "furlong/shard/executor/metamath/metamath.h"
#include "furlong/shard/executor/metamath/verify.h"

namespace furlong::shard::metamath::testing {

/// Implication and quantifier, with a rule that has a hypothesis and one that wants variables to be distinct.
inline constexpr std::string_view kSystem = R"mm(
$c ( ) -> A. wff set |- $.  $( A comment. $)
$v ph ps ch x y $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
vx $f set x $.  vy $f set y $.
wi $a wff ( ph -> ps ) $.
wal $a wff A. x ph $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
${ min $e |- ph $.  maj $e |- ( ph -> ps ) $.  ax-mp $a |- ps $. $}
${ ax-gen.1 $e |- ph $.  ax-gen $a |- A. x ph $. $}
${ $d x ph $.  ax-5 $a |- ( ph -> A. x ph ) $. $}
)mm";

/// Six theorems over it: a hypothesis, a compressed proof, distinct variables, an optional variable.
inline constexpr std::string_view kTheorems = R"mm(
${ a1i.1 $e |- ph $.
   a1i $p |- ( ps -> ph ) $= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $. $}
id $p |- ( ph -> ph ) $= ( wi ax-1 ax-2 ax-mp ) AAABZBZFAACAFABBGFBAFCAFADEE $.
idd $p |- ( ps -> ( ph -> ph ) ) $= wph wph wi wps wph id a1i $.
${ $d x ph $.  five $p |- ( ps -> ( ph -> A. x ph ) ) $= wph wph vx wal wi wps wph vx ax-5 a1i $. $}
${ $d y ph $.
   optional $p |- ( ph -> ph ) $= wph wph vy wal wi wph wph wi wph vy ax-5
     wph wph wi wph wph vy wal wi wph id a1i ax-mp $. $}
gen $p |- A. x ( ph -> ph ) $= wph wph wi vx wph id ax-gen $.
)mm";

inline std::string small_text() { return std::string(kSystem) + std::string(kTheorems); }

inline Database parsed(std::string text) {
  auto database = Database::parse(std::move(text), "test.mm");
  if (!database) throw std::runtime_error(database.error().text());
  return std::move(*database);
}

/// Of what parses; the labels of what is unproved.
inline std::vector<std::string> unproved(const Database& database) {
  std::vector<std::string> out;
  const auto report = verify_database(database);
  if (!report) throw std::runtime_error(report.error().text());
  for (const Unproved& one : report->unproved) out.push_back(one.theorem);
  return out;
}

/// A store's units and items without a file, with the rules that a store has.
class MemoryStore : public UnitSink, public ItemSource {
 public:
  static constexpr const char* kSettings = R"({"format":1,"axioms":0,"proofs":0})";

  Result<Key> add_item(ByteView bytes, bool = false) override {
    const Key key = blake2b_256(bytes);
    items_[key] = Bytes(bytes.begin(), bytes.end());
    return key;
  }
  Status add_unit(const std::string& name, std::vector<Key> items, std::vector<Key> references) override {
    if (items.empty()) return fail(Code::invalid, "{} owns nothing", name);
    if (!names_.insert(name).second) return fail(Code::invalid, "{} twice", name);
    for (const Key& key : items) {
      if (!items_.contains(key)) return fail(Code::invalid, "{}: no such item", name);
      if (!owned_.insert(key).second) return fail(Code::invalid, "{}: owned already", name);
    }
    // Stricter than a store: a database refers to what came before.
    for (const Key& key : references)
      if (!owned_.contains(key)) return fail(Code::invalid, "{}: refers to what nobody owns so far", name);
    const Key key = unit_key(items, references);
    units_.push_back({key, name, std::move(items), std::move(references)});
    return {};
  }
  Result<ByteView> item(const Key& key) override {
    const auto found = items_.find(key);
    if (found == items_.end()) return fail(Code::invalid, "no item {}", key.brief());
    return ByteView(found->second);
  }

  const std::vector<Unit>& units() const { return units_; }
  std::vector<Unit>& units() { return units_; }
  const Unit& unit(std::string_view name) const {
    const auto found = std::ranges::find(units_, name, &Unit::name);
    if (found == units_.end()) throw std::runtime_error("no unit " + std::string(name));
    return *found;
  }

 private:
  std::map<Key, Bytes> items_;
  std::vector<Unit> units_;
  std::set<std::string> names_;
  std::set<Key> owned_;
};

/// The store of a text that parses.
inline MemoryStore stored(std::string text) {
  MemoryStore store;
  const Database database = parsed(std::move(text));
  const auto made = make_units(database, store);
  if (!made) throw std::runtime_error(made.error().text());
  return store;
}

inline std::unique_ptr<Record> record(std::uint64_t cap = 0) {
  auto made = make_executor()->begin(MemoryStore::kSettings, cap, {});
  if (!made) throw std::runtime_error(made.error().text());
  return std::move(*made);
}

/// The claim of units, by the definition in shard/types.h.
inline Claim claim(std::span<const Unit> units) {
  std::set<Key> owned, items, frontier;
  for (const Unit& unit : units) {
    owned.insert(unit.key);
    items.insert(unit.items.begin(), unit.items.end());
  }
  for (const Unit& unit : units)
    for (const Key& key : unit.references)
      if (!items.contains(key)) frontier.insert(key);
  return {merkle_root({owned.begin(), owned.end()}), merkle_root({frontier.begin(), frontier.end()})};
}

/// Theorems over kSystem with true proofs, drawn at random: formulas as trees, derivations forwards.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed, "metamath proofs") {}

  /// `count` theorems t0, t1, … that use each other.
  std::string theorems(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += theorem(fmt::format("t{}", i));
    return out;
  }

 private:
  struct Formula {
    std::string text;   // "( ph -> ps )"
    std::string proof;  // the labels that build it
  };
  struct Derived {
    Formula formula;
    std::string proof;
  };

  static Formula arrow(const Formula& left, const Formula& right) {
    return {"( " + left.text + " -> " + right.text + " )", left.proof + right.proof + "wi "};
  }

  Formula formula(int depth) {
    if (depth > 0 && random_.below(2) == 0) return arrow(formula(depth - 1), formula(depth - 1));
    if (depth > 0 && random_.below(5) == 0) {
      const Formula body = formula(depth - 1);
      return {"A. x " + body.text, body.proof + "vx wal "};
    }
    static const std::vector<Formula> leaves{{"ph", "wph "}, {"ps", "wps "}, {"ch", "wch "}};
    return leaves[random_.below(leaves.size())];
  }

  Derived derive(int depth) {
    switch (depth == 0 ? random_.below(2) : random_.below(5)) {
      case 0: {
        const Formula a = formula(2), b = formula(2);
        return {arrow(a, arrow(b, a)), a.proof + b.proof + "ax-1 "};
      }
      case 1: {
        const Formula a = formula(1), b = formula(1), c = formula(1);
        return {arrow(arrow(a, arrow(b, c)), arrow(arrow(a, b), arrow(a, c))),
                a.proof + b.proof + c.proof + "ax-2 "};
      }
      case 2: {  // P, so ( a -> P ), by modus ponens from ax-1
        const Derived p = derive(depth - 1);
        const Formula a = formula(1), goal = arrow(a, p.formula);
        return {goal, p.formula.proof + goal.proof + p.proof + p.formula.proof + a.proof + "ax-1 ax-mp "};
      }
      case 3: {
        const Derived p = derive(depth - 1);
        return {{"A. x " + p.formula.text, p.formula.proof + "vx wal "},
                p.formula.proof + "vx " + p.proof + "ax-gen "};
      }
      default: {  // an earlier theorem, whose frame is its formula's variables in order
        if (known_.empty()) return derive(0);
        return known_[random_.below(known_.size())];
      }
    }
  }

  std::string theorem(const std::string& label) {
    const Derived made = derive(3);
    const std::string out = fmt::format("{} $p |- {} $= {}$.\n", label, made.formula.text, made.proof);
    // Used again under the identity: each variable of the formula stands for itself.
    std::string frame;
    const std::vector<std::string> words = split(made.formula.text, ' ');
    for (const auto& [name, floating] :
         {std::pair{"ph", "wph "}, std::pair{"ps", "wps "}, std::pair{"ch", "wch "}, std::pair{"x", "vx "}})
      if (std::ranges::find(words, name) != words.end()) frame += floating;
    known_.push_back({made.formula, frame + label + " "});
    return out;
  }

  Random random_;
  std::vector<Derived> known_;
};

}  // namespace furlong::shard::metamath::testing
