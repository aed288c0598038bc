#include "furlong/shard/executor/metamath/internal/certificate_read.h"

#include <algorithm>
#include <optional>

namespace furlong::shard::metamath::verifying {

std::uint8_t Cursor::octet() {
  if (left.empty()) {
    broken = true;
    return 0;
  }
  const std::uint8_t value = left.front();
  left = left.subspan(1);
  return value;
}

std::uint64_t Cursor::leb() {
  std::uint64_t value = 0;
  for (unsigned group = 0; group < 9; ++group) {  // 63 bits are more than anything here counts
    const std::uint8_t next = octet();
    value |= static_cast<std::uint64_t>(next & 127u) << (7 * group);
    if ((next & 128u) == 0) {
      if (group > 0 && next == 0) broken = true;
      return broken ? 0 : value;
    }
  }
  broken = true;
  return 0;
}

Word Cursor::below(std::uint64_t bound) {
  const std::uint64_t value = leb();
  if (value < bound && value < kConstant) return static_cast<Word>(value);
  broken = true;
  return 0;
}

Word Cursor::many() { return below(left.size() + 1); }

ByteView Cursor::take(std::size_t bytes) {
  if (bytes > left.size()) {
    broken = true;
    return {};
  }
  const ByteView taken = left.first(bytes);
  left = left.subspan(bytes);
  return taken;
}

Key Cursor::key() {
  Key key;
  const ByteView taken = take(key.bytes.size());
  std::copy(taken.begin(), taken.end(), key.bytes.begin());
  return key;
}

namespace {

Error unreadable(std::string_view what) { return fail(Code::mismatch, "{}", what); }

std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(Cursor& in) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out(in.many());
  for (auto& [first, second] : out) {
    if (in.broken) break;
    first = in.leb();
    second = in.leb();
  }
  return out;
}

struct LocalSymbol {
  bool variable;
  std::string_view name;
};

/// Local numbers of a statement item, turned into rows of the certificate's table.
class Local {
 public:
  Local(std::vector<LocalSymbol> symbols, const SymbolTable& table)
      : symbols_(std::move(symbols)), table_(table), rows_(symbols_.size()) {
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      if (!symbols_[i].variable) rows_[i] = look(symbols_[i].name, kConstant);
  }
  bool give_type(const Words& floating) {
    if (floating.size() != 2 || !rows_[floating[0]]) return false;
    const LocalSymbol& symbol = symbols_[floating[1]];
    if (!symbol.variable || rows_[floating[1]]) return false;
    rows_[floating[1]] = look(symbol.name, *rows_[floating[0]]);
    return rows_[floating[1]].has_value();
  }
  bool turn(Words& expression) const {
    for (Word& word : expression) {
      if (!rows_[word]) return false;
      word = *rows_[word];
    }
    return !expression.empty() && !table_.variable(expression[0]);
  }
  std::optional<Word> row(std::uint64_t local) const {
    if (local >= rows_.size() || !symbols_[local].variable) return std::nullopt;
    return rows_[local];
  }

 private:
  std::optional<Word> look(std::string_view name, Word type) const {
    const auto found = table_.places.find({name, type});
    if (found == table_.places.end()) return std::nullopt;
    return found->second;
  }
  std::vector<LocalSymbol> symbols_;
  const SymbolTable& table_;
  std::vector<std::optional<Word>> rows_;
};

Words list(Cursor& in, std::uint64_t bound) {
  Words out(in.many());
  for (Word& word : out) {
    if (in.broken) break;
    word = in.below(bound);
  }
  return out;
}

}  // namespace

Result<Statement> read_statement(ByteView bytes, const SymbolTable& table) {
  Cursor in{bytes};
  if (in.octet() != 'S' || in.octet() != 1) return unreadable("it is no statement item of format 1");
  std::vector<LocalSymbol> symbols(in.many());
  for (LocalSymbol& symbol : symbols) {
    if (in.broken) break;
    symbol.variable = in.octet() != 0;
    symbol.name = in.words();
  }
  const std::size_t bound = symbols.size();
  std::vector<std::pair<bool, Words>> premises(in.many());
  for (auto& [essential, expression] : premises) {
    if (in.broken) break;
    essential = in.octet() != 0;
    expression = list(in, bound);
  }
  Statement statement;
  statement.conclusion = list(in, bound);
  const auto apart = pairs(in);
  if (in.broken || !in.left.empty()) return unreadable("the statement item is torn");

  Local local(std::move(symbols), table);
  for (const auto& [essential, expression] : premises)
    if (!essential && !local.give_type(expression))
      return unreadable("a variable of the statement has no place in the certificate");
  for (auto& [essential, expression] : premises) {
    if (!local.turn(expression))
      return unreadable("a symbol of the statement has no place in the certificate");
    const Word variable = essential ? kConstant : expression[1];
    statement.premises.push_back({std::move(expression), variable});
  }
  if (!local.turn(statement.conclusion))
    return unreadable("a symbol of the statement has no place in the certificate");
  for (const auto& [first, second] : apart) {
    const auto a = local.row(first), b = local.row(second);
    if (!a || !b) return unreadable("a pair of the statement is not of variables");
    statement.apart.emplace_back(*a, *b);
  }
  return statement;
}

Result<ProofHead> read_proof_head(ByteView bytes) {
  Cursor in{bytes};
  if (in.octet() != 'P' || in.octet() != 1) return unreadable("it is no proof item of format 1");
  ProofHead head;
  head.statement = in.key();
  in.leb();
  in.take(std::size_t{in.many()} * 32);
  head.extra.resize(in.many());
  for (auto& [type, name] : head.extra) {
    if (in.broken) break;
    type = in.words();
    name = in.words();
  }
  head.apart = pairs(in);
  if (in.broken) return unreadable("the proof item is torn");
  return head;
}

namespace {

bool read_head(ByteView bytes, Certificate& into) {
  Cursor in{bytes};
  const Word symbols = in.many();
  for (Word i = 0; i < symbols && !in.broken; ++i) {
    const Word type = in.below(std::uint64_t{i} + 1);  // of a variable: row + 1, of an earlier symbol
    const std::string_view name = in.words();
    if (type != 0 && into.symbols.variable(type - 1)) return false;
    const std::pair<std::string_view, Word> symbol{name, type == 0 ? kConstant : type - 1};
    into.symbols.rows.push_back(symbol);
    if (!into.symbols.places.emplace(symbol, i).second) return false;
  }
  into.rules.resize(in.many());
  for (Key& rule : into.rules) {
    if (in.broken) break;
    rule = in.key();
  }
  into.units.resize(in.many());
  for (auto& [unit, row] : into.units) {
    if (in.broken) break;
    unit = in.key();
    row = in.leb();
  }
  return !in.broken && in.left.empty();
}

}  // namespace

Result<Certificate> read_certificate(ByteView body, Cursor& rows) {
  Cursor in{body};
  if (as_text(in.take(4)) != "FMC1") return unreadable("the receipt holds no certificate of version 1");
  Certificate certificate;
  certificate.root = in.key();
  certificate.head = in.take(in.many());
  if (in.broken || !read_head(certificate.head, certificate))
    return unreadable("the certificate's head is torn");
  const std::size_t bound = certificate.symbols.rows.size();
  certificate.expressions.resize(in.many());
  for (Words& expression : certificate.expressions) {
    expression = list(in, bound);
    if (in.broken || expression.empty() || certificate.symbols.variable(expression[0]))
      return unreadable("an expression of the certificate is torn");
  }
  rows = in;
  return certificate;
}

}  // namespace furlong::shard::metamath::verifying
