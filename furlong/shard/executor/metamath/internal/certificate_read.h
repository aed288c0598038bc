#pragma once
// The verifier's own reading of items and certificates, apart from internal/items.h on purpose.

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/bytes.h"
#include "furlong/shard/types.h"

namespace furlong::shard::metamath::verifying {

using Word = std::uint32_t;
using Words = std::vector<Word>;
inline constexpr Word kConstant = 0xffffffffu;

/// Walks over bytes; goes on with zeros after the first fault.
struct Cursor {
  ByteView left;
  bool broken = false;

  std::uint8_t octet();
  std::uint64_t leb();
  /// leb() below a bound, or broken.
  Word below(std::uint64_t bound);
  /// How many of something follow, each of one byte or more.
  Word many();
  ByteView take(std::size_t bytes);
  Key key();
  std::string_view words() { return as_text(take(many())); }
};

/// The symbols of a certificate: (name, row of the type, or kConstant) to row.
struct SymbolTable {
  std::vector<std::pair<std::string_view, Word>> rows;
  std::map<std::pair<std::string_view, Word>, Word> places;

  bool variable(Word symbol) const { return rows[symbol].second != kConstant; }
};

/// A statement in the certificate's symbols.
struct Statement {
  struct Premise {
    Words expression;
    Word variable = kConstant;  ///< floating: which
  };
  std::vector<Premise> premises;
  Words conclusion;
  std::vector<std::pair<Word, Word>> apart;
};

/// What of a proof item a certificate is judged by; the steps are not.
struct ProofHead {
  Key statement;
  std::vector<std::pair<std::string_view, std::string_view>> extra;  ///< type and name
  std::vector<std::pair<std::uint64_t, std::uint64_t>> apart;        ///< positions among all variables
};

struct Certificate {
  struct Row {
    Word rule = 0, result = 0;
    std::size_t parents = 0;  ///< into Certificate::parents
  };
  Digest root;
  ByteView head;
  SymbolTable symbols;
  std::vector<Key> rules;
  std::vector<std::pair<Key, std::uint64_t>> units;  ///< row + 1, or 0
  std::vector<Words> expressions;
  std::vector<Row> rows;  ///< filled by the verifier, which knows how many parents a rule takes
  Words parents;
};

/// `mismatch` for bytes that are none, or name a symbol that the table lacks.
Result<Statement> read_statement(ByteView bytes, const SymbolTable& symbols);
Result<ProofHead> read_proof_head(ByteView bytes);
/// Up to the rows, whose bytes stay in `rows`.
Result<Certificate> read_certificate(ByteView body, Cursor& rows);

}  // namespace furlong::shard::metamath::verifying
