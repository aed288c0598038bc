#include "furlong/record/race_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "furlong/base/text.h"
#include "furlong/record/internal/words.h"

namespace furlong::record {
namespace {

using internal::escaped;
using internal::escaped_sentence;
using internal::unescaped;
using internal::Words;
using lattice::Value;

// --- values

std::string percent_encoded_first(std::string_view token) {
  return fmt::format("%{:02X}{}", static_cast<unsigned char>(token[0]), token.substr(1));
}

// A class value as the line has it: numbers and truths are bare, words never look like one.
std::optional<Value> bare_value(std::string_view token) {
  if (token == "true" || token == "false") return Value(token == "true");
  if (const auto integer = parse_integer(token)) return Value(*integer);
  if (const auto number = parse_number(token)) return Value(*number);
  return std::nullopt;
}

std::string value_token(const Value& value) {
  if (!value.is_word()) return value.text();
  const std::string token = escaped(*value.word(), "");
  return bare_value(token) ? percent_encoded_first(token) : token;
}

std::string feature_token(std::string_view name) {
  const std::string token = escaped(name, "");
  return token == "variants" ? percent_encoded_first(token) : token;
}

std::string rate_token(const std::optional<double>& rate) {
  return rate && std::isfinite(*rate) ? fmt::format("{:.6g}", *rate) : "-";
}
std::string gain_token(const std::optional<double>& gain) {
  return gain && std::isfinite(*gain) ? fmt::format("{:+.2f}%", *gain) : "-";
}
std::string ms_token(double ms) { return fmt::format("{:.0f}", std::isfinite(ms) && ms > 0 ? ms : 0.0); }

std::string variant_token(const RaceLine::Variant& variant) {
  std::string token = escaped(variant.name, "=") + "=" + rate_token(variant.rate);
  if (!token.ends_with("=-")) {
    if (variant.regs) token += fmt::format("/{}r", *variant.regs);
    if (variant.warps) token += fmt::format("/{}w", *variant.warps);
  }
  return token;
}

// --- reading

std::optional<int> count_of(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

// "<rate>/<regs>r/<warps>w"; parts with another letter are a newer writer's.
std::optional<RaceLine::Variant> variant_of(std::string_view token) {
  const std::size_t equals = token.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  RaceLine::Variant variant;
  auto name = unescaped(token.substr(0, equals));
  if (!name) return std::nullopt;
  variant.name = *std::move(name);
  const std::vector<std::string> parts = split(token.substr(equals + 1), '/');
  if (parts[0] == "-") return variant;
  const auto rate = parse_number(parts[0]);
  if (!rate) return std::nullopt;
  variant.rate = *rate;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (part.ends_with('r')) variant.regs = count_of(part.substr(0, part.size() - 1));
    if (part.ends_with('w')) variant.warps = count_of(part.substr(0, part.size() - 1));
  }
  return variant;
}

Status read_class(Words& words, ProgramClass& into) {
  while (words.peek() != "variants") {
    FURLONG_TRY(std::string name, words.name("'variants' or a feature of the class"));
    const std::string_view token = words.next();
    auto word = unescaped(token);
    if (token.empty() || !word) return words.expected(fmt::format("the value of '{}'", name), token);
    auto bare = bare_value(token);
    into.emplace_back(std::move(name), bare ? *std::move(bare) : Value(*std::move(word)));
  }
  return {};
}

Status read_variants(Words& words, std::vector<RaceLine::Variant>& into) {
  FURLONG_CHECK(words.word("variants"));
  const std::string_view digits = words.next();
  const auto count = count_of(digits);
  if (!count) return words.expected("the number of variants", digits);
  for (int i = 0; i < *count; ++i) {
    const std::string_view token = words.next();
    auto variant = variant_of(token);
    if (!variant) return words.expected(fmt::format("variant {} of {} as name=rate", i + 1, *count), token);
    into.push_back(*std::move(variant));
  }
  return {};
}

Status read_result(Words& words, RaceLine& line) {
  FURLONG_CHECK(words.word("winner"));
  FURLONG_TRY(line.winner, words.name("the winner's name"));
  FURLONG_TRY(line.rate, words.rate("the winner's rate"));
  FURLONG_CHECK(words.word("base"));
  FURLONG_TRY(line.base_rate, words.rate("base's rate"));
  FURLONG_CHECK(words.word("gain"));
  const std::string_view gain = words.next();
  if (gain != "-") {
    const std::size_t sign = gain.starts_with('+') ? 1 : 0;
    const auto number = gain.ends_with('%') && gain.size() > sign
                            ? parse_number(gain.substr(sign, gain.size() - sign - 1))
                            : Result<double>(Error(Code::invalid, ""));
    if (!number) return words.expected("the gain as +1.50%", gain);
    line.gain_pct = *number;
  }
  FURLONG_CHECK(words.word("compile"));
  FURLONG_TRY(line.compile_ms, words.ms("milliseconds of compiling"));
  FURLONG_CHECK(words.word("bench"));
  FURLONG_TRY(line.bench_ms, words.ms("milliseconds of timing"));
  FURLONG_CHECK(words.word("total"));
  FURLONG_TRY(line.total_ms, words.ms("milliseconds in all"));
  return words.word("ms");
}

std::optional<Interval> interval_of(std::string_view token) {
  const std::size_t dots = token.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto lo = parse_number(token.substr(0, dots)), hi = parse_number(token.substr(dots + 2));
  if (!lo || !hi) return std::nullopt;
  return Interval{*lo, *hi};
}

// What may follow: known phrases in any order; every other word is a newer writer's and is skipped.
void read_optional(Words& words, RaceLine& line) {
  while (words.more()) {
    const std::string_view word = words.next();
    const std::string_view value = words.peek();
    if (word == "pinned" && value == "by") {
      line.pinned = true;
    } else if (word == "tuned" && value == "order") {
      line.tuned = true;
    } else if (word == "verdict") {
      if (const auto verdict = parse_verdict(value)) line.verdict = *verdict;
    } else if (word == "ci") {
      if (const auto ci = interval_of(value)) line.ci = ci;
    } else if (word == "heats") {
      if (const auto count = count_of(value)) line.heats = count;
    } else if (word == "paused") {
      if (const auto ms = parse_number(value); ms && *ms >= 0) line.paused_ms = *ms;
    }
  }
  if (line.pinned) line.tuned = false;
}

void read_outs(std::string_view text, std::vector<RaceLine::Out>& outs) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('|'), text.size());
    const std::string_view segment = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = segment.find(": ");
    if (colon == std::string_view::npos || segment.substr(0, colon).find(' ') != std::string_view::npos)
      continue;
    auto variant = unescaped(segment.substr(0, colon));
    auto why = unescaped(segment.substr(colon + 2));
    if (variant && why) outs.push_back({*std::move(variant), *std::move(why)});
  }
}

}  // namespace

std::string print(const RaceLine& line) {
  const std::string epoch = line.epoch.empty() ? std::string(16, '0') : escaped(line.epoch, "");
  std::string out = fmt::format("race {} device {} driver {} arch {}", epoch, escaped(line.device, ""),
                                escaped(line.driver, ""), escaped(line.arch, ""));
  for (const auto& [name, value] : line.program_class)
    out += fmt::format(" {} {}", feature_token(name), value_token(value));
  out += fmt::format(" variants {}", line.variants.size());
  for (const RaceLine::Variant& variant : line.variants) out += " " + variant_token(variant);
  out +=
      fmt::format(" winner {} {} base {} gain {} compile {} bench {} total {} ms", escaped(line.winner, ""),
                  rate_token(line.rate), rate_token(line.base_rate), gain_token(line.gain_pct),
                  ms_token(line.compile_ms), ms_token(line.bench_ms), ms_token(line.total_ms));
  if (line.pinned)
    out += " pinned by tuning";
  else if (line.tuned)
    out += " tuned order";
  if (line.verdict) out += fmt::format(" verdict {}", verdict_name(*line.verdict));
  if (line.ci && std::isfinite(line.ci->lo) && std::isfinite(line.ci->hi))
    out += fmt::format(" ci {:.2f}..{:.2f}", line.ci->lo, line.ci->hi);
  if (line.heats) out += fmt::format(" heats {}", std::max(0, *line.heats));
  if (line.paused_ms) out += fmt::format(" paused {}", ms_token(*line.paused_ms));
  for (const RaceLine::Out& why : line.outs)
    out += fmt::format(" | {}: {}", escaped(why.variant, ":"), escaped_sentence(why.why));
  return out;
}

Result<RaceLine> parse_race_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t bar = std::min(text.find('|'), text.size());
  Words words(text.substr(0, bar), "race line");
  RaceLine line;
  FURLONG_CHECK(words.word("race"));
  const std::string_view epoch = words.next();
  if (epoch.size() != 16 || epoch.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return words.expected("the epoch as 16 lower-case hexadecimal digits", epoch);
  line.epoch = epoch;
  FURLONG_CHECK(words.word("device"));
  FURLONG_TRY(line.device, words.name("the device's name"));
  FURLONG_CHECK(words.word("driver"));
  FURLONG_TRY(line.driver, words.name("the driver"));
  FURLONG_CHECK(words.word("arch"));
  FURLONG_TRY(line.arch, words.name("the architecture"));
  FURLONG_CHECK(read_class(words, line.program_class));
  FURLONG_CHECK(read_variants(words, line.variants));
  FURLONG_CHECK(read_result(words, line));
  read_optional(words, line);
  if (bar < text.size()) read_outs(text.substr(bar + 1), line.outs);
  return line;
}

RaceLine race_line(const RaceRecord& record) {
  RaceLine line;
  line.epoch = record.epoch;
  line.device = record.card;
  line.driver = record.driver;
  line.arch = record.arch;
  line.program_class = record.program_class;
  for (const RacedVariant& variant : record.variants) {
    line.variants.push_back({variant.name, variant.rate, variant.detail.regs, variant.detail.warps});
    // Those that were timed and lost have their rate; the others have a reason.
    if (!variant.rate && !variant.detail.out.empty()) line.outs.push_back({variant.name, variant.detail.out});
  }
  line.winner = record.winner;
  line.rate = record.rate;
  line.base_rate = record.base_rate;
  line.gain_pct = record.gain_pct;
  line.compile_ms = record.compile_ms;
  line.bench_ms = record.bench_ms;
  line.total_ms = record.total_ms;
  line.pinned = record.pinned;
  line.tuned = record.tuned && !record.pinned;
  line.verdict = record.verdict;
  line.ci = record.ci;
  line.heats = record.heats;
  line.paused_ms = record.paused_ms;
  return line;
}

std::string race_record_line(const RaceRecord& record) { return print(race_line(record)); }

}  // namespace furlong::record
