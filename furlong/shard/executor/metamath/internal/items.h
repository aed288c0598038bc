#pragma once
// The items of a Metamath store as bytes (docs/formats/metamath-items.md): what the store maker writes and
// the check reads. The verifier of certificates has a reader of its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/shard/types.h"

namespace furlong::shard::metamath {

constexpr std::uint8_t kStatementItem = 'S';
constexpr std::uint8_t kProofItem = 'P';
constexpr std::uint8_t kItemFormat = 1;

/// LEB128: seven bits a byte, the lowest first, the top bit set on all but the last.
void put_number(Bytes& to, std::uint64_t number);
void put_text(Bytes& to, std::string_view text);

/// Numbers and texts one after another; the first thing that is wrong is kept, and everything read behind it
/// is zero or empty.
class ItemReader {
 public:
  explicit ItemReader(ByteView bytes) : bytes_(bytes) {}
  std::uint8_t byte();
  std::uint64_t number();
  /// A number of things that take at least one byte each: no more than there are bytes left.
  std::uint32_t count();
  /// A number below `limit`.
  std::uint32_t index(std::uint64_t limit);
  std::string_view text();
  Key key();
  bool ended() const { return at_ == bytes_.size(); }
  void fail_with(std::string_view what);
  /// The first error, or what is left over.
  Status finish();
  bool ok() const { return wrong_.empty(); }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
  std::string wrong_;
};

/// An assertion by content. Symbols are numbered by their first appearance in hypotheses and conclusion.
struct StatementItem {
  struct Symbol {
    bool variable = false;
    std::string_view name;
    bool operator==(const Symbol&) const = default;
  };
  struct Hypothesis {
    bool essential = false;
    std::vector<std::uint32_t> expression;  ///< $f: type and variable
    bool operator==(const Hypothesis&) const = default;
  };
  struct Pair {
    std::uint32_t first = 0, second = 0;
    auto operator<=>(const Pair&) const = default;
  };
  std::vector<Symbol> symbols;
  std::vector<Hypothesis> hypotheses;
  std::vector<std::uint32_t> conclusion;
  std::vector<Pair> distinct;  ///< of symbols; first < second, sorted, none twice
  bool operator==(const StatementItem&) const = default;
};

/// A proof of a statement by statements. Steps are numbers: 0 saves the result on top of the stack, 1 stands
/// for a part that is missing; from 2 on: the statement's hypotheses, then the optional variables, then the
/// rules, then the saved results.
struct ProofItem {
  struct Variable {
    std::string_view type, name;
    bool operator==(const Variable&) const = default;
  };
  Key statement;
  std::uint64_t copy = 0;  ///< counts up where a database proves one statement in one way more than once
  std::vector<Key> rules;  ///< by first use
  std::vector<Variable> optional;  ///< variables that only the proof has, by first use
  /// Pairs with at least one optional variable: first the statement's floating hypotheses count, then these.
  std::vector<StatementItem::Pair> distinct;
  std::vector<std::uint64_t> steps;
  bool operator==(const ProofItem&) const = default;
};
constexpr std::uint64_t kStepSave = 0, kStepUnknown = 1, kFirstStep = 2;

Bytes encode(const StatementItem& item);
Bytes encode(const ProofItem& item);
/// Views into `bytes`. `mismatch` for anything but what encode() writes for a statement that means something:
/// a name twice, a variable without a type or with two, numbering that is not by appearance.
Result<StatementItem> decode_statement(ByteView bytes);
/// Numbers of steps are not looked at; those of pairs only among themselves.
Result<ProofItem> decode_proof_item(ByteView bytes);

}  // namespace furlong::shard::metamath
