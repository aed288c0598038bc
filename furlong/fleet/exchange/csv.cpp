#include "furlong/fleet/exchange/csv.h"

#include <algorithm>
#include <utility>

#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/exchange/internal/complete.h"
#include "furlong/fleet/exchange/internal/csv_columns.h"
#include "furlong/fleet/exchange/internal/readers.h"

namespace furlong::fleet {
namespace {

void add_cell(const std::string& text, std::string& row) {
  if (!row.empty() && row.back() != '\n') row += ',';
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos && trim(text).size() == text.size();
  if (plain)
    row += text;
  else
    row += '"' + replace_all(text, "\"", "\"\"") + '"';
}

}  // namespace

std::string csv_head() {
  std::vector<std::string> names;
  for (const auto& column : internal::race_columns()) names.emplace_back(column.name);
  for (const auto& column : internal::variant_columns()) names.emplace_back(column.name);
  return join(names, ",") + "\n";
}

std::string csv_rows(const record::RaceRecord& record) {
  std::string race;
  for (const auto& column : internal::race_columns()) {
    const bool first = &column == internal::race_columns().data();
    std::string text;
    add_cell(column.get(record), text);
    race += (first ? "" : ",") + text;
  }
  std::string rows;
  for (const record::RacedVariant& variant : record.variants) {
    rows += race;
    for (const auto& column : internal::variant_columns()) {
      std::string text;
      add_cell(column.get(variant), text);
      rows += "," + text;
    }
    rows += "\n";
  }
  return rows;
}

std::optional<std::vector<std::string>> parse_csv_row(std::string_view row) {
  std::vector<std::string> cells(1);
  for (std::size_t at = 0; at < row.size();) {
    if (row[at] != '"') {
      const std::size_t end = std::min(row.find(',', at), row.size());
      const std::string_view plain = row.substr(at, end - at);
      if (plain.find('"') != std::string_view::npos) return std::nullopt;
      cells.back() = trim(plain);
      at = end;
    } else {
      for (++at;; ++at) {
        if (at == row.size()) return std::nullopt;
        if (row[at] != '"') {
          cells.back() += row[at];
        } else if (at + 1 < row.size() && row[at + 1] == '"') {
          cells.back() += row[++at];
        } else {
          break;
        }
      }
      ++at;
      if (at < row.size() && row[at] != ',') return std::nullopt;
    }
    if (at < row.size()) {
      cells.emplace_back();
      ++at;
    }
  }
  return cells;
}

namespace internal {
namespace {

constexpr std::size_t most_row_bytes = 1u << 20;
constexpr std::size_t most_variants = 4096;

/// Whether a quote is open at the end of the text.
bool quote_open(std::string_view text) {
  bool open = false;
  for (const char c : text) open ^= c == '"';
  return open;
}

class CsvReader : public RecordReader {
 public:
  CsvReader(std::string name, const ImportDefaults& defaults, Sink sink)
      : name_(std::move(name)), defaults_(defaults), sink_(std::move(sink)) {}

  Status line(std::string_view text, int number) override {
    if (!pending_.empty()) {
      pending_ += '\n';
    } else {
      row_number_ = number;
    }
    pending_ += text;
    if (pending_.size() > most_row_bytes) {
      problem(fail(Code::invalid, "the row has more than {} bytes; is a quote left open?", most_row_bytes));
      pending_.clear();
      return {};
    }
    if (quote_open(pending_)) return {};
    if (pending_.ends_with('\r')) pending_.pop_back();
    const std::string row = std::exchange(pending_, {});
    if (trim(row).empty()) return {};
    const auto cells = parse_csv_row(row);
    if (!cells) {
      problem(fail(Code::invalid, "a quote stands within a cell that is not quoted"));
      return {};
    }
    if (columns_.empty()) return head(*cells);
    return take(*cells);
  }

  Status end() override {
    if (!pending_.empty()) problem(fail(Code::invalid, "a quote is left open"));
    if (columns_.empty() && !spoilt_) problem(fail(Code::invalid, "there is no row of column names"));
    return finish_race();
  }

 private:
  struct Column {
    std::string name;
    const RaceColumn* race = nullptr;
    const VariantColumn* variant = nullptr;
  };

  void problem(const Error& error) {
    sink_.problem(fail(error.code(), "{}:{}: {}", name_, row_number_, error.text()));
  }

  Status head(std::vector<std::string> names) {
    if (spoilt_) return {};
    names[0] = std::string(without_byte_order_mark(names[0]));
    for (std::string& name : names) {
      Column column{.name = name};
      for (const RaceColumn& each : race_columns())
        if (each.name == name) column.race = &each;
      for (const VariantColumn& each : variant_columns())
        if (each.name == name) column.variant = &each;
      columns_.push_back(std::move(column));
    }
    const auto has = [&](std::string_view name) {
      return std::ranges::find(columns_, name, &Column::name) != columns_.end();
    };
    if (has("variant")) return {};
    problem(fail(Code::invalid, "no column is called variant; the first row names the columns"));
    columns_.clear();
    spoilt_ = true;
    return {};
  }

  /// One row: another variant of the race in hand, or the first of the next.
  Status take(const std::vector<std::string>& cells) {
    std::vector<std::string> race_cells;
    record::RacedVariant variant;
    Status good;
    if (cells.size() > columns_.size())
      good = fail(Code::invalid, "{} cells, and {} columns have names", cells.size(), columns_.size());
    for (std::size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
      if (columns_[i].race != nullptr) race_cells.push_back(cells[i]);
      if (columns_[i].variant == nullptr || cells[i].empty() || !good) continue;
      if (auto status = columns_[i].variant->set(variant, cells[i]); !status)
        good = fail(Code::invalid, "{}: {}", columns_[i].name, status.error().text());
    }
    if (good && variant.name.empty()) good = fail(Code::invalid, "variant: it has no name");
    const bool again = record_ && record_->find(variant.name) != nullptr;
    if (!in_race_ || race_cells != race_cells_ || again) {
      FURLONG_CHECK(finish_race());
      race_cells_ = std::move(race_cells);
      begin_race(cells);
    }
    if (good && record_ && record_->variants.size() >= most_variants)
      good = fail(Code::invalid, "the race has more than {} variants", most_variants);
    if (!good) {
      problem(good.error());
      record_.reset();  // without this variant the race would say another thing
    }
    if (record_) record_->variants.push_back(std::move(variant));
    return {};
  }

  void begin_race(const std::vector<std::string>& cells) {
    in_race_ = true;
    race_number_ = row_number_;
    record_.emplace();
    for (std::size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
      if (columns_[i].race == nullptr || cells[i].empty()) continue;
      if (auto status = columns_[i].race->set(*record_, cells[i]); !status) {
        problem(fail(Code::invalid, "{}: {}", columns_[i].name, status.error().text()));
        record_.reset();
        return;
      }
    }
    if (record_->ts.empty() && defaults_.date_us) record_->ts = iso_time(*defaults_.date_us);
  }

  Status finish_race() {
    in_race_ = false;
    if (!record_) return {};
    record::RaceRecord record = *std::move(record_);
    record_.reset();
    auto imported = complete(std::move(record), {}, race_number_, defaults_);
    if (!imported) {
      sink_.problem(fail(imported.error().code(), "{}:{}: {}", name_, race_number_, imported.error().text()));
      return {};
    }
    return sink_.record(*std::move(imported));
  }

  const std::string name_;
  const ImportDefaults defaults_;
  const Sink sink_;
  std::string pending_;  // a row whose quote is open
  int row_number_ = 0, race_number_ = 0;
  std::vector<Column> columns_;
  bool spoilt_ = false;  // it has no head
  bool in_race_ = false;
  std::vector<std::string> race_cells_;
  std::optional<record::RaceRecord> record_;  // nullopt within a race: it is left out
};

}  // namespace

bool is_csv_head(std::string_view line) {
  const auto cells = parse_csv_row(trim(line));
  return cells && cells->size() > 1 && std::ranges::find(*cells, "variant") != cells->end();
}

std::unique_ptr<RecordReader> make_csv_reader(std::string name, const ImportDefaults& defaults,
                                              RecordReader::Sink sink) {
  return std::make_unique<CsvReader>(std::move(name), defaults, std::move(sink));
}

}  // namespace internal
}  // namespace furlong::fleet
