#pragma once
// A Metamath database read into memory: the language of chapter 4 and appendix E of N. Megill and D. A.
// Wheeler, Metamath: A Computer Language for Mathematical Proofs (2019). Reading checks everything but the
// proofs, which proof.h decodes and verify.h verifies.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"
#include "furlong/shard/executor/metamath/names.h"

namespace furlong::shard::metamath {

/// A constant or variable: index into Database::symbols().
using Symbol = std::uint32_t;
using Expression = std::span<const Symbol>;

struct SymbolInfo {
  std::string_view name;
  bool variable = false;
};

/// A stretch of one of the database's pools.
struct Range {
  std::uint32_t begin = 0, count = 0;
};

/// Where something stands: a source file and a byte of it.
struct Place {
  std::uint32_t source = 0;
  std::uint32_t offset = 0;
};

/// $f or $e. `declared` and `closed` number statements and ends of scopes alike: a hypothesis can be used by
/// the assertions numbered between them.
struct Hypothesis {
  std::string_view label;
  bool essential = false;
  Symbol variable = 0;  ///< $f: the variable that is given a type
  Range expression;
  std::uint32_t declared = 0, closed = 0xffffffffu;
  Place place;
};

/// Two variables that must be replaced by expressions without a common one; first < second.
struct Distinct {
  Symbol first = 0, second = 0;
  auto operator<=>(const Distinct&) const = default;
};

/// $a or $p with its frame.
struct Assertion {
  std::string_view label;
  bool theorem = false;
  Range hypotheses;  ///< mandatory ones, in their order: indices into Database::hypotheses()
  Range distinct;    ///< between mandatory variables; sorted, none twice
  Range conclusion;
  Range scopes;            ///< $p: the $d statements in force, for pairs with other variables
  std::string_view proof;  ///< $p: the text between $= and $.
  std::uint32_t declared = 0;
  Place place;
};

/// Immutable once read; thread safe. Views into it are valid as long as it is.
class Database {
 public:
  /// The file and what it includes; the path of an included file is taken from the folder of `file`, and a
  /// file included twice counts once. `invalid` with file, line and label for the first thing that is wrong;
  /// the errors of Files::read.
  static Result<Database> read(const std::filesystem::path& file, Files& files = system_files());
  /// One text without inclusions; `name` stands for the file in messages. At most 4 GiB.
  static Result<Database> parse(std::string text, std::string name);

  const std::vector<SymbolInfo>& symbols() const { return symbols_; }
  const std::vector<Hypothesis>& hypotheses() const { return hypotheses_; }
  /// In the order of the text.
  const std::vector<Assertion>& assertions() const { return assertions_; }
  /// $a and $p statements, as `metamath` counts them.
  std::uint64_t axiom_count() const { return assertions_.size() - theorems_; }
  std::uint64_t theorem_count() const { return theorems_; }

  Expression expression(Range range) const { return {cells_.data() + range.begin, range.count}; }
  std::span<const std::uint32_t> hypotheses_of(const Assertion& assertion) const {
    return {frames_.data() + assertion.hypotheses.begin, assertion.hypotheses.count};
  }
  std::span<const Distinct> distinct_of(const Assertion& assertion) const {
    return {distinct_.data() + assertion.distinct.begin, assertion.distinct.count};
  }
  /// Every pair that must stay distinct in the proof of a $p, with its optional variables; sorted, none
  /// twice.
  void all_distinct(const Assertion& theorem, std::vector<Distinct>& into) const;

  struct Label {
    bool assertion = false;
    std::uint32_t index = 0;  ///< into assertions() or hypotheses()
  };
  std::optional<Label> find(std::string_view label) const;

  /// "set.mm:120".
  std::string at(Place place) const;

 private:
  friend class Parser;
  struct Source {
    std::string name;
    std::string text;
  };
  Database() = default;

  std::deque<Source> sources_;
  std::vector<SymbolInfo> symbols_;
  std::vector<Hypothesis> hypotheses_;
  std::vector<Assertion> assertions_;
  std::uint64_t theorems_ = 0;
  std::vector<Symbol> cells_;
  std::vector<std::uint32_t> frames_;
  std::vector<Distinct> distinct_;
  std::vector<Range> disjoint_statements_;  // $d: ranges of cells_
  std::vector<std::uint32_t> in_force_;     // indices into disjoint_statements_
  Names symbol_names_, labels_;  // labels_: index * 2 + 1 for an assertion, index * 2 for a hypothesis
};

}  // namespace furlong::shard::metamath
