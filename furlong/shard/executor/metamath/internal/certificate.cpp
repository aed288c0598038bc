#include "furlong/shard/executor/metamath/internal/certificate.h"

#include <array>

namespace furlong::shard::metamath {
namespace {

Digest inner(const Digest& left, const Digest& right) {
  std::array<std::uint8_t, 65> bytes{1};
  std::copy(left.bytes.begin(), left.bytes.end(), bytes.begin() + 1);
  std::copy(right.bytes.begin(), right.bytes.end(), bytes.begin() + 33);
  return blake2b_256(bytes);
}

void put_word(Bytes& to, std::uint32_t word) {
  to.resize(to.size() + sizeof word);
  store_le(to.data() + to.size() - sizeof word, word);
}

void put_key(Bytes& to, const Key& key) { to.insert(to.end(), key.bytes.begin(), key.bytes.end()); }

std::size_t number_bytes(std::uint64_t number) {
  std::size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

/// Symbols, rules and what proves which unit.
Bytes head(const MetamathRecord& record, std::span<const Unit> units) {
  const Tables& tables = record.tables();
  Bytes out;
  put_number(out, tables.symbols.size());
  for (const Tables::Symbol& symbol : tables.symbols) {
    put_number(out, symbol.type == kNoRow ? 0 : std::uint64_t{symbol.type} + 1);
    put_text(out, symbol.name);
  }
  put_number(out, tables.keys.size());
  for (std::size_t i = 0; i < tables.keys.size(); ++i) put_key(out, tables.keys[i]);
  put_number(out, units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    put_key(out, units[i].key);
    const std::uint32_t row = record.proved_by()[i];
    put_number(out, row == kNoRow ? 0 : std::uint64_t{row} + 1);
  }
  return out;
}

/// The expressions that rows state, numbered by first use: those that are only patterns of rules are left
/// out.
class Stated {
 public:
  explicit Stated(const Tables& tables) : number_(tables.expressions.size(), kNoRow) {
    for (std::uint32_t row = 0; row < tables.steps.size(); ++row) {
      std::uint32_t& number = number_[tables.steps[row].result];
      if (number != kNoRow) continue;
      number = static_cast<std::uint32_t>(order_.size());
      order_.push_back(tables.steps[row].result);
    }
  }
  std::uint32_t number(std::uint32_t expression) const { return number_[expression]; }
  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  std::vector<std::uint32_t> number_, order_;
};

void put_expressions(Bytes& out, const Tables& tables, const Stated& stated) {
  put_number(out, stated.order().size());
  for (const std::uint32_t expression : stated.order()) {
    const std::uint32_t* const cells = tables.cells_of(expression);
    const std::uint32_t length = tables.expressions[expression].length;
    put_number(out, length);
    for (std::uint32_t j = 0; j < length; ++j) put_number(out, cells[j]);
  }
}

void put_row(Bytes& out, const Tables& tables, const Stated& stated, std::uint32_t row) {
  const Tables::Step& step = tables.steps[row];
  put_number(out, step.rule);
  put_number(out, stated.number(step.result));
  if (step.rule < Tables::kFirstRule) return;
  for (std::uint32_t i = 0; i < tables.arity(step.rule); ++i)
    put_number(out, row - tables.parents[step.parents + i]);  // never 0: parents stand before
}

/// What the leaf of a row is the hash of: everything in full.
void put_leaf(Bytes& out, const Tables& tables, std::uint32_t row) {
  const Tables::Step& step = tables.steps[row];
  put_word(out, step.rule);
  const std::uint32_t parents = step.rule < Tables::kFirstRule ? 0 : tables.arity(step.rule);
  put_word(out, parents);
  for (std::uint32_t i = 0; i < parents; ++i) put_word(out, tables.parents[step.parents + i]);
  const std::uint32_t* const cells = tables.cells_of(step.result);
  for (std::uint32_t i = 0; i < tables.expressions[step.result].length; ++i) put_word(out, cells[i]);
}

/// Exactly what put_expressions() and put_row() will write, so that the body is allocated once.
std::size_t table_bytes(const Tables& tables, const Stated& stated) {
  std::size_t bytes = number_bytes(stated.order().size()) + number_bytes(tables.steps.size());
  for (const std::uint32_t expression : stated.order()) {
    const std::uint32_t* const cells = tables.cells_of(expression);
    const std::uint32_t length = tables.expressions[expression].length;
    bytes += number_bytes(length);
    for (std::uint32_t j = 0; j < length; ++j) bytes += number_bytes(cells[j]);
  }
  for (std::uint32_t row = 0; row < tables.steps.size(); ++row) {
    const Tables::Step& step = tables.steps[row];
    bytes += number_bytes(step.rule) + number_bytes(stated.number(step.result));
    if (step.rule < Tables::kFirstRule) continue;
    for (std::uint32_t i = 0; i < tables.arity(step.rule); ++i)
      bytes += number_bytes(row - tables.parents[step.parents + i]);
  }
  return bytes;
}

}  // namespace

void MerkleStream::add(const Digest& leaf) {
  std::array<std::uint8_t, 33> bytes{0};
  std::copy(leaf.bytes.begin(), leaf.bytes.end(), bytes.begin() + 1);
  Digest made = blake2b_256(bytes);
  for (std::uint64_t size = ++count_; size % 2 == 0; size /= 2) {
    made = inner(pending_.back(), made);
    pending_.pop_back();
  }
  pending_.push_back(made);
}

Digest MerkleStream::root() const {
  Digest made = pending_.back();
  for (std::size_t i = pending_.size() - 1; i-- > 0;) made = inner(pending_[i], made);
  return made;
}

Result<Bytes> write_certificate(const MetamathRecord& record, std::span<const Unit> units,
                                const std::stop_token& stop) {
  const Tables& tables = record.tables();
  const Stated stated(tables);
  const Bytes head_bytes = head(record, units);
  MerkleStream tree;
  tree.add(blake2b_256(head_bytes));
  Bytes body;
  body.reserve(4 + sizeof(Digest::bytes) + number_bytes(head_bytes.size()) + head_bytes.size() +
               table_bytes(tables, stated));
  for (const char c : {'F', 'M', 'C', '1'}) body.push_back(static_cast<std::uint8_t>(c));
  body.resize(body.size() + sizeof(Digest::bytes));  // for the root
  put_number(body, head_bytes.size());
  body.insert(body.end(), head_bytes.begin(), head_bytes.end());
  put_expressions(body, tables, stated);
  put_number(body, tables.steps.size());
  Bytes leaf;
  for (std::uint32_t row = 0; row < tables.steps.size(); ++row) {
    if (row % 4096 == 0 && stop.stop_requested())
      return fail(Code::timeout, "stopped at row {} of {} of the certificate", row, tables.steps.size());
    put_row(body, tables, stated, row);
    leaf.clear();
    put_leaf(leaf, tables, row);
    tree.add(blake2b_256(leaf));
  }
  const Digest root = tree.root();
  std::copy(root.bytes.begin(), root.bytes.end(), body.begin() + 4);
  return body;
}

}  // namespace furlong::shard::metamath
