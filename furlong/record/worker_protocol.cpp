#include "furlong/record/worker_protocol.h"

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

constexpr std::string_view kHex = "0123456789abcdef";

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }
std::string ms_text(double ms) { return fmt::format("{:.3f}", std::isfinite(ms) && ms > 0 ? ms : 0.0); }
std::string rate_text(double rate) {
  return fmt::format("{:.6g}", std::isfinite(rate) && rate > 0 ? rate : 0.0);
}
// JSON of one line has no raw control characters; a line break in it would end the event.
std::string json_text(std::string_view json) { return one_line(json); }

class EventWords : public Words {
 public:
  using Words::Words;

  Result<std::uint64_t> hex64(std::string_view what) {
    const std::string_view found = next();
    std::uint64_t value = 0;
    if (found.size() != 16 || found.find_first_not_of(kHex) != std::string_view::npos)
      return expected(fmt::format("{} as 16 lower-case hexadecimal digits", what), found);
    std::from_chars(found.data(), found.data() + found.size(), value, 16);
    return value;
  }
  Result<std::uint64_t> count(std::string_view what) {
    const std::string_view found = next();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (found.empty() || error != std::errc() || end != found.data() + found.size())
      return expected(fmt::format("{} as a whole number under 2^64", what), found);
    return value;
  }
  Result<std::string> epoch() {
    const std::string_view found = next();
    if (found.size() != 16 || found.find_first_not_of(kHex) != std::string_view::npos)
      return expected("the epoch as 16 lower-case hexadecimal digits", found);
    return std::string(found);
  }
  Result<std::int64_t> day() {
    const std::string_view found = next();
    const auto value = parse_integer(found);
    if (!value || *value < 0) return expected("the day as a whole number", found);
    return *value;
  }
  Result<Pair> pair() {
    Pair pair;
    FURLONG_TRY(pair.epoch, epoch());
    FURLONG_TRY(pair.day, day());
    return pair;
  }
  Result<std::string> named(std::string_view what) {
    FURLONG_TRY(std::string text, name(what));
    if (text.empty()) return expected(what, "-");
    return text;
  }
  std::string sentence() {
    const std::string_view text = rest();
    return unescaped(text).value_or(std::string(text));
  }
  Status end() {
    if (more()) return expected("the end of the line", next());
    return {};
  }
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

Result<Code> parse_code(std::string_view word) {
  for (const Code code : {Code::unavailable, Code::invalid, Code::mismatch, Code::timeout, Code::exhausted,
                          Code::corrupt, Code::incompatible, Code::denied, Code::internal})
    if (code_name(code) == word) return code;
  return fail(Code::invalid, "worker event: unknown error code '{}'", word.substr(0, 40));
}

Result<WorkerEvent> parse_ready(EventWords& words) {
  ReadyEvent event;
  const std::string_view version = words.next();
  const auto number = parse_integer(version);
  if (!number) return words.expected("the protocol's version", version);
  if (*number != worker_protocol)
    return fail(Code::incompatible,
                "worker event: protocol {}, and this is protocol {}: update the older side", *number,
                worker_protocol);
  FURLONG_TRY(event.device, words.named("the device's address"));
  FURLONG_TRY(event.card, words.name("the card"));
  FURLONG_CHECK(words.word("driver"));
  FURLONG_TRY(event.driver, words.name("the driver"));
  FURLONG_CHECK(words.word("arch"));
  FURLONG_TRY(event.arch, words.name("the architecture"));
  return event;
}

Result<WorkerEvent> parse_prepared(EventWords& words) {
  PreparedEvent event;
  FURLONG_TRY(event.pair, words.pair());
  FURLONG_TRY(event.variant, words.named("the variant"));
  FURLONG_TRY(event.ms, words.ms("milliseconds"));
  return event;
}

Result<WorkerEvent> parse_rate(EventWords& words) {
  RateEvent event;
  FURLONG_TRY(event.pair, words.pair());
  FURLONG_TRY(event.variant, words.named("the variant"));
  FURLONG_TRY(event.mhs, words.ms("the rate in MH/s"));
  FURLONG_CHECK(words.word("hashes"));
  FURLONG_TRY(event.hashes, words.count("the number of hashes"));
  FURLONG_CHECK(words.word("job"));
  FURLONG_TRY(event.job, words.named("the job"));
  FURLONG_CHECK(words.word("next"));
  FURLONG_TRY(event.next, words.hex64("the next nonce"));
  while (words.more()) {
    const std::string_view word = words.next();
    if (word != "power") continue;
    if (const auto watts = parse_number(words.peek()); watts && *watts >= 0) event.power_w = *watts;
  }
  return event;
}

Result<WorkerEvent> parse_found(EventWords& words) {
  FoundEvent event;
  FURLONG_TRY(event.job, words.named("the job"));
  FURLONG_TRY(event.nonce, words.hex64("the nonce"));
  FURLONG_TRY(event.hash, words.hex64("the hash"));
  return event;
}

Result<WorkerEvent> parse_swap(EventWords& words) {
  SwapEvent event;
  FURLONG_TRY(event.epoch, words.epoch());
  FURLONG_TRY(event.gap_ms, words.ms("milliseconds of the gap"));
  FURLONG_CHECK(words.word("day"));
  FURLONG_TRY(event.day, words.day());
  FURLONG_CHECK(words.word("variant"));
  FURLONG_TRY(event.variant, words.named("the variant"));
  FURLONG_CHECK(words.word("chunks"));
  FURLONG_TRY(event.gap_chunks, words.ms("the gap in chunks"));
  FURLONG_CHECK(words.word("late"));
  FURLONG_TRY(event.late_ms, words.ms("milliseconds since the job came"));
  while (words.more())
    if (words.next() == "prepared") event.prepared = true;
  return event;
}

Result<WorkerEvent> parse_done(EventWords& words) {
  DoneEvent event;
  FURLONG_TRY(event.job, words.named("the job"));
  FURLONG_TRY(event.start, words.hex64("the first nonce"));
  FURLONG_TRY(event.hashes, words.count("the number of hashes"));
  const std::string_view how = words.next();
  if (how != "complete" && how != "cut") return words.expected("'complete' or 'cut'", how);
  event.complete = how == "complete";
  return event;
}

Result<WorkerEvent> parse_lost(EventWords& words) {
  LostEvent event;
  FURLONG_TRY(event.pair, words.pair());
  FURLONG_TRY(event.lost_ms, words.ms("milliseconds lost"));
  FURLONG_CHECK(words.word("paused"));
  FURLONG_TRY(event.paused_ms, words.ms("milliseconds paused"));
  FURLONG_CHECK(words.word("over"));
  FURLONG_TRY(event.over_ms, words.ms("milliseconds of preparing"));
  return event;
}

Result<WorkerEvent> parse_reverted(EventWords& words) {
  RevertedEvent event;
  FURLONG_TRY(event.pair, words.pair());
  FURLONG_TRY(event.variant, words.named("the variant"));
  event.why = words.sentence();
  return event;
}

Result<WorkerEvent> parse_recovered(EventWords& words) {
  RecoveredEvent event;
  FURLONG_TRY(event.ms, words.ms("milliseconds"));
  event.why = words.sentence();
  return event;
}

Result<WorkerEvent> parse_error(EventWords& words) {
  ErrorEvent event;
  const std::string_view word = words.next();
  const auto code = parse_code(word);
  if (!code) return words.expected("an error code", word);
  event.code = *code;
  event.message = words.sentence();
  return event;
}

}  // namespace

std::string Pair::text() const { return fmt::format("{} {}", epoch, day); }

std::string print(const WorkerCommand& command) {
  return std::visit(Overloaded{
                        [](const PrepareCommand& c) {
                          return fmt::format("prepare {} {}", c.pair.text(), escaped(c.pack));
                        },
                        [](const JobCommand& c) {
                          return fmt::format("job {} {} {} {} {}", c.pair.text(), escaped(c.job),
                                             hex(c.target), hex(c.start), c.count);
                        },
                        [](const StatusCommand&) { return std::string("status"); },
                        [](const StopCommand&) { return std::string("stop"); },
                        [](const QuitCommand&) { return std::string("quit"); },
                    },
                    command);
}

Result<WorkerCommand> parse_worker_command(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  EventWords words(line, "worker command");
  const std::string_view what = words.next();
  const auto ended = [&](WorkerCommand command) -> Result<WorkerCommand> {
    FURLONG_CHECK(words.end());
    return command;
  };
  if (what == "prepare") {
    PrepareCommand command;
    FURLONG_TRY(command.pair, words.pair());
    FURLONG_TRY(command.pack, words.named("the pack's folder"));
    return ended(std::move(command));
  }
  if (what == "job") {
    JobCommand command;
    FURLONG_TRY(command.pair, words.pair());
    FURLONG_TRY(command.job, words.named("the job's name"));
    if (command.job.size() > most_job_bytes)
      return fail(Code::invalid, "worker command: a job's name has {} bytes at most, this one {}",
                  most_job_bytes, command.job.size());
    FURLONG_TRY(command.target, words.hex64("the target"));
    FURLONG_TRY(command.start, words.hex64("the first nonce"));
    FURLONG_TRY(command.count, words.count("the number of nonces"));
    return ended(std::move(command));
  }
  if (what == "status") return ended(StatusCommand{});
  if (what == "stop") return ended(StopCommand{});
  if (what == "quit") return ended(QuitCommand{});
  static const std::string known[] = {"prepare", "job", "status", "stop", "quit"};
  return fail(Code::invalid, "worker command: unknown command '{}'{}", one_line(what.substr(0, 40)),
              nearest_choices(what, known));
}

std::string print(const WorkerEvent& event) {
  return std::visit(
      Overloaded{
          [](const ReadyEvent& e) {
            return fmt::format("ready {} {} {} driver {} arch {}", e.protocol, escaped(e.device),
                               escaped(e.card), escaped(e.driver), escaped(e.arch));
          },
          [](const PreparedEvent& e) {
            return fmt::format("prepared {} {} {}", e.pair.text(), escaped(e.variant), ms_text(e.ms));
          },
          [](const RaceEvent& e) { return one_line(e.line); },
          [](const RecordEvent& e) { return "record " + json_text(e.json); },
          [](const RateEvent& e) {
            std::string text =
                fmt::format("rate {} {} {} hashes {} job {} next {}", e.pair.text(), escaped(e.variant),
                            rate_text(e.mhs), e.hashes, escaped(e.job), hex(e.next));
            if (e.power_w) text += " power " + rate_text(*e.power_w);
            return text;
          },
          [](const FoundEvent& e) {
            return fmt::format("found {} {} {}", escaped(e.job), hex(e.nonce), hex(e.hash));
          },
          [](const SwapEvent& e) {
            return fmt::format("swap {} {} day {} variant {} chunks {} late {}{}", e.epoch, ms_text(e.gap_ms),
                               e.day, escaped(e.variant), ms_text(e.gap_chunks), ms_text(e.late_ms),
                               e.prepared ? " prepared" : "");
          },
          [](const DoneEvent& e) {
            return fmt::format("done {} {} {} {}", escaped(e.job), hex(e.start), e.hashes,
                               e.complete ? "complete" : "cut");
          },
          [](const LostEvent& e) {
            return fmt::format("lost {} {} paused {} over {}", e.pair.text(), ms_text(e.lost_ms),
                               ms_text(e.paused_ms), ms_text(e.over_ms));
          },
          [](const RevertedEvent& e) {
            return fmt::format("reverted {} {} {}", e.pair.text(), escaped(e.variant),
                               escaped_sentence(e.why));
          },
          [](const RecoveredEvent& e) {
            return fmt::format("recovered {} {}", ms_text(e.ms), escaped_sentence(e.why));
          },
          [](const StateEvent& e) { return "status " + json_text(e.json); },
          [](const NoteEvent& e) { return "note " + escaped_sentence(e.text); },
          [](const ErrorEvent& e) {
            return fmt::format("error {} {}", code_name(e.code), escaped_sentence(e.message));
          },
          [](const ByeEvent&) { return std::string("bye"); },
          [](const UnknownEvent& e) { return one_line(e.line); },
      },
      event);
}

Result<WorkerEvent> parse_worker_event(std::string_view text) {
  // What is printed holds no controls: a line that has some is read as it would be printed.
  const std::string clean = one_line(text);
  const std::string_view line = trim(clean);
  EventWords words(line, "worker event");
  const std::string_view what = words.next();
  if (what == "ready") return parse_ready(words);
  if (what == "prepared") return parse_prepared(words);
  if (what == "race") return RaceEvent{std::string(line)};
  if (what == "record") return RecordEvent{std::string(words.rest())};
  if (what == "rate") return parse_rate(words);
  if (what == "found") return parse_found(words);
  if (what == "swap") return parse_swap(words);
  if (what == "done") return parse_done(words);
  if (what == "lost") return parse_lost(words);
  if (what == "reverted") return parse_reverted(words);
  if (what == "recovered") return parse_recovered(words);
  if (what == "status") return StateEvent{std::string(words.rest())};
  if (what == "note") return NoteEvent{words.sentence()};
  if (what == "error") return parse_error(words);
  if (what == "bye") return ByeEvent{};
  return UnknownEvent{std::string(line)};
}

}  // namespace furlong::record
