#include "furlong/shard/executor/metamath/internal/items.h"

#include <algorithm>

namespace furlong::shard::metamath {

void put_number(Bytes& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) to.push_back(static_cast<std::uint8_t>(number | 0x80));
  to.push_back(static_cast<std::uint8_t>(number));
}

void put_text(Bytes& to, std::string_view text) {
  put_number(to, text.size());
  to.insert(to.end(), text.begin(), text.end());
}

void ItemReader::fail_with(std::string_view what) {
  if (wrong_.empty()) wrong_ = fmt::format("byte {}: {}", at_, what);
}

std::uint8_t ItemReader::byte() {
  if (ok() && at_ < bytes_.size()) return bytes_[at_++];
  fail_with("it ends too early");
  return 0;
}

std::uint64_t ItemReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const std::uint8_t next = byte();
    if (!ok()) return 0;
    value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
    if (next >= 0x80) continue;
    if (next == 0 && shift > 0) break;  // one number, one way to write it
    return value;
  }
  fail_with("this is no number");
  return 0;
}

std::uint32_t ItemReader::index(std::uint64_t limit) {
  const std::uint64_t value = number();
  if (ok() && value >= limit) fail_with(fmt::format("{} is over the {} that there are", value, limit));
  return ok() ? static_cast<std::uint32_t>(value) : 0;
}

std::uint32_t ItemReader::count() {
  const std::uint64_t value = number();
  if (ok() && value > bytes_.size() - at_)
    fail_with(fmt::format("a count of {} is over what is left", value));
  return ok() ? static_cast<std::uint32_t>(value) : 0;
}

std::string_view ItemReader::text() {
  const std::uint32_t size = count();
  if (!ok()) return {};
  const std::string_view value = as_text(bytes_.subspan(at_, size));
  at_ += size;
  return value;
}

Key ItemReader::key() {
  Key key;
  if (bytes_.size() - at_ < key.bytes.size()) fail_with("a key is cut short");
  if (!ok()) return key;
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), key.bytes.size(), key.bytes.begin());
  at_ += key.bytes.size();
  return key;
}

Status ItemReader::finish() {
  if (ok() && !ended()) fail_with("something stands behind the end");
  if (ok()) return {};
  return fail(Code::mismatch, "{}", wrong_);
}

namespace {

void put_list(Bytes& to, const std::vector<std::uint32_t>& numbers) {
  put_number(to, numbers.size());
  for (const std::uint32_t number : numbers) put_number(to, number);
}

void put_pairs(Bytes& to, const std::vector<StatementItem::Pair>& pairs) {
  put_number(to, pairs.size());
  for (const auto& pair : pairs) {
    put_number(to, pair.first);
    put_number(to, pair.second);
  }
}

void read_head(ItemReader& reader, std::uint8_t kind, std::string_view what) {
  if (reader.byte() != kind) reader.fail_with(fmt::format("this is no {} item", what));
  if (reader.byte() != kItemFormat) reader.fail_with("an item of another format");
}

std::vector<StatementItem::Pair> read_pairs(ItemReader& reader, std::uint64_t limit) {
  std::vector<StatementItem::Pair> pairs(reader.count());
  for (std::size_t i = 0; i < pairs.size() && reader.ok(); ++i) {
    pairs[i].first = reader.index(limit);
    pairs[i].second = reader.index(limit);
    if (pairs[i].first >= pairs[i].second || (i > 0 && !(pairs[i - 1] < pairs[i])))
      reader.fail_with("pairs out of order");
  }
  return pairs;
}

/// Reads expressions and sees to it that symbols come in the order of their numbers.
class Expressions {
 public:
  Expressions(ItemReader& reader, const std::vector<StatementItem::Symbol>& symbols)
      : reader_(reader), symbols_(symbols) {}

  std::vector<std::uint32_t> read() {
    std::vector<std::uint32_t> expression(reader_.count());
    for (std::size_t i = 0; i < expression.size() && reader_.ok(); ++i) {
      expression[i] = reader_.index(symbols_.size());
      if (expression[i] > seen_) reader_.fail_with("symbols are not numbered by appearance");
      if (expression[i] == seen_) ++seen_;
      if (reader_.ok() && i == 0 && symbols_[expression[0]].variable)
        reader_.fail_with("an expression begins with a variable");
    }
    if (expression.empty()) reader_.fail_with("an empty expression");
    return expression;
  }
  std::size_t seen() const { return seen_; }

 private:
  ItemReader& reader_;
  const std::vector<StatementItem::Symbol>& symbols_;
  std::uint32_t seen_ = 0;
};

void read_symbols(ItemReader& reader, std::vector<StatementItem::Symbol>& symbols) {
  symbols.resize(reader.count());
  for (auto& symbol : symbols) {
    const std::uint8_t kind = reader.byte();
    if (kind > 1) reader.fail_with("a symbol is neither constant nor variable");
    symbol.variable = kind == 1;
    symbol.name = reader.text();
    if (symbol.name.empty()) reader.fail_with("a symbol without a name");
    if (!reader.ok()) return;
  }
  std::vector<std::string_view> names;
  names.reserve(symbols.size());
  for (const auto& symbol : symbols) names.push_back(symbol.name);
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end()) reader.fail_with("a symbol twice");
}

/// Every variable has exactly one type.
void check_types(ItemReader& reader, const StatementItem& item) {
  if (!reader.ok()) return;
  std::vector<std::uint8_t> typed(item.symbols.size(), 0);
  for (const auto& hypothesis : item.hypotheses) {
    if (hypothesis.essential) continue;
    if (hypothesis.expression.size() != 2 || !item.symbols[hypothesis.expression[1]].variable)
      return reader.fail_with("a floating hypothesis that is no type and variable");
    if (typed[hypothesis.expression[1]]++ != 0) return reader.fail_with("a variable with two types");
  }
  for (std::size_t i = 0; i < typed.size(); ++i)
    if (item.symbols[i].variable && typed[i] == 0) return reader.fail_with("a variable without a type");
  for (const auto& pair : item.distinct)
    if (!item.symbols[pair.first].variable || !item.symbols[pair.second].variable)
      return reader.fail_with("a pair of what are not variables");
}

}  // namespace

Bytes encode(const StatementItem& item) {
  Bytes bytes{kStatementItem, kItemFormat};
  put_number(bytes, item.symbols.size());
  for (const auto& symbol : item.symbols) {
    bytes.push_back(symbol.variable ? 1 : 0);
    put_text(bytes, symbol.name);
  }
  put_number(bytes, item.hypotheses.size());
  for (const auto& hypothesis : item.hypotheses) {
    bytes.push_back(hypothesis.essential ? 1 : 0);
    put_list(bytes, hypothesis.expression);
  }
  put_list(bytes, item.conclusion);
  put_pairs(bytes, item.distinct);
  return bytes;
}

Result<StatementItem> decode_statement(ByteView bytes) {
  ItemReader reader(bytes);
  StatementItem item;
  read_head(reader, kStatementItem, "statement");
  read_symbols(reader, item.symbols);
  Expressions expressions(reader, item.symbols);
  item.hypotheses.resize(reader.count());
  for (auto& hypothesis : item.hypotheses) {
    const std::uint8_t kind = reader.byte();
    if (kind > 1) reader.fail_with("a hypothesis is neither floating nor essential");
    hypothesis.essential = kind == 1;
    hypothesis.expression = expressions.read();
    if (!reader.ok()) break;
  }
  item.conclusion = expressions.read();
  if (reader.ok() && expressions.seen() != item.symbols.size()) reader.fail_with("a symbol that is not used");
  item.distinct = read_pairs(reader, item.symbols.size());
  check_types(reader, item);
  FURLONG_CHECK(reader.finish());
  return item;
}

Bytes encode(const ProofItem& item) {
  Bytes bytes{kProofItem, kItemFormat};
  bytes.insert(bytes.end(), item.statement.bytes.begin(), item.statement.bytes.end());
  put_number(bytes, item.copy);
  put_number(bytes, item.rules.size());
  for (const Key& rule : item.rules) bytes.insert(bytes.end(), rule.bytes.begin(), rule.bytes.end());
  put_number(bytes, item.optional.size());
  for (const auto& variable : item.optional) {
    put_text(bytes, variable.type);
    put_text(bytes, variable.name);
  }
  put_pairs(bytes, item.distinct);
  put_number(bytes, item.steps.size());
  for (const std::uint64_t step : item.steps) put_number(bytes, step);
  return bytes;
}

Result<ProofItem> decode_proof_item(ByteView bytes) {
  ItemReader reader(bytes);
  ProofItem item;
  read_head(reader, kProofItem, "proof");
  item.statement = reader.key();
  item.copy = reader.number();
  item.rules.resize(reader.count());
  for (Key& rule : item.rules) {
    rule = reader.key();
    if (!reader.ok()) break;
  }
  item.optional.resize(reader.count());
  for (auto& variable : item.optional) {
    variable.type = reader.text();
    variable.name = reader.text();
    if (variable.type.empty() || variable.name.empty()) reader.fail_with("a variable without a name or type");
    if (!reader.ok()) break;
  }
  item.distinct = read_pairs(reader, std::uint64_t{1} << 32);
  item.steps.resize(reader.count());
  for (std::uint64_t& step : item.steps) {
    step = reader.number();
    if (!reader.ok()) break;
  }
  FURLONG_CHECK(reader.finish());
  return item;
}

}  // namespace furlong::shard::metamath
