#include "furlong/fleet/exchange/record_reader.h"

#include "furlong/base/text.h"
#include "furlong/fleet/exchange/internal/complete.h"
#include "furlong/fleet/exchange/internal/readers.h"

namespace furlong::fleet {
namespace {

class JsonLinesReader : public RecordReader {
 public:
  JsonLinesReader(std::string name, const ImportDefaults& defaults, Sink sink)
      : name_(std::move(name)), defaults_(defaults), sink_(std::move(sink)) {}

  Status line(std::string_view text, int number) override {
    if (trim(text).empty()) return {};
    const std::string where = fmt::format("{}:{}", name_, number);
    auto record = record::parse_record(text, where);
    if (!record) {
      sink_.problem(std::move(record).error());
      return {};
    }
    auto imported = internal::complete(*std::move(record), text, number, defaults_);
    if (!imported) {
      sink_.problem(fail(imported.error().code(), "{}: {}", where, imported.error().text()));
      return {};
    }
    return sink_.record(*std::move(imported));
  }
  Status end() override { return {}; }

 private:
  const std::string name_;
  const ImportDefaults defaults_;
  const Sink sink_;
};

}  // namespace

std::string_view exchange_format_name(ExchangeFormat format) {
  switch (format) {
    case ExchangeFormat::jsonl:
      return "jsonl";
    case ExchangeFormat::csv:
      return "csv";
    case ExchangeFormat::log:
      return "log";
  }
  return "jsonl";
}

Result<ExchangeFormat> parse_exchange_format(std::string_view text) {
  for (const ExchangeFormat each : {ExchangeFormat::jsonl, ExchangeFormat::csv, ExchangeFormat::log})
    if (exchange_format_name(each) == text) return each;
  return fail(Code::invalid, "'{}' is no format; there are jsonl, csv and log", one_line(text.substr(0, 60)));
}

std::string_view without_byte_order_mark(std::string_view line) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return line.starts_with(mark) ? line.substr(mark.size()) : line;
}

ExchangeFormat guess_format(std::string_view line) {
  const std::string_view text = trim(line);
  if (text.starts_with('{')) return ExchangeFormat::jsonl;
  return internal::is_csv_head(text) ? ExchangeFormat::csv : ExchangeFormat::log;
}

std::unique_ptr<RecordReader> make_record_reader(ExchangeFormat format, std::string name,
                                                 const ImportDefaults& defaults, RecordReader::Sink sink) {
  switch (format) {
    case ExchangeFormat::csv:
      return internal::make_csv_reader(std::move(name), defaults, std::move(sink));
    case ExchangeFormat::log:
      return internal::make_log_reader(std::move(name), defaults, std::move(sink));
    case ExchangeFormat::jsonl:
      break;
  }
  return std::make_unique<JsonLinesReader>(std::move(name), defaults, std::move(sink));
}

}  // namespace furlong::fleet
