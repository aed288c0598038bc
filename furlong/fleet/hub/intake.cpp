#include "furlong/fleet/hub/intake.h"

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/reply.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_enrolment_bytes = 4096;
constexpr double queue_retry_s = 2;

bool is_fingerprint(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_signature(std::string_view text) {
  return text.size() == 128 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return small;
}

/// "application/x; charset=utf-8" → "application/x".
std::string media_type(const ServerRequest& request) {
  const std::string_view header = request.header("content-type");
  return lower(trim(header.substr(0, header.find(';'))));
}

/// One of so many at a time; given back also when memory runs out.
class Turn {
 public:
  explicit Turn(std::counting_semaphore<>& turns) : turns_(turns) { turns_.acquire(); }
  ~Turn() { turns_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::counting_semaphore<>& turns_;
};

int status_of(const Error& error) {
  if (error.code() == Code::exhausted) return 413;
  return error.code() == Code::incompatible ? 422 : 400;
}

/// Why this token does not enrol this key, or empty: then the store itself denied the write.
Result<bool> token_is_good(Store& store, const Digest& digest, const std::string& machine,
                           std::int64_t now_us) {
  FURLONG_TRY(const auto tokens, store.tokens());
  const auto token = std::ranges::find(tokens, digest, &Token::digest);
  if (token == tokens.end()) return false;
  if (token->machine.empty() ? token->expires_us <= now_us : token->machine != machine) return false;
  FURLONG_TRY(const auto known, store.machine(machine));
  return !known || known->state == MachineState::active;
}

}  // namespace

Intake::Intake(IntakeOptions options, Writer& writer, StorePool& pool, Metrics& metrics, Clock& clock,
               Say say)
    : options_(options),
      writer_(writer),
      pool_(pool),
      metrics_(metrics),
      clock_(clock),
      say_(std::move(say)),
      judges_(options.judges > 0 ? options.judges
                                 : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      kinds_(options.kinds),
      machines_({options.batches_per_minute, std::max(1.0, options.batches_per_minute), options.most_names}),
      enrolments_(
          {options.enrolments_per_minute, std::max(1.0, options.enrolments_per_minute), options.most_names}),
      addresses_(
          {options.failures_per_minute, std::max(1.0, options.failures_per_minute), options.most_names}),
      senders_({options.failures_per_minute, std::max(1.0, options.failures_per_minute), options.most_names}),
      forgeries_(
          {options.forgeries_per_minute, std::max(1.0, options.forgeries_per_minute), options.most_names}),
      repeats_({options.batches_per_minute, std::max(1.0, options.batches_per_minute), options.most_names}),
      told_({.per_minute = 0.1, .burst = 3, .most_names = 1000}),
      verified_(options.most_names) {}

std::vector<std::pair<std::string, std::size_t>> Intake::remembered() const {
  return {{"machines", machines_.names()},   {"enrolments", enrolments_.names()},
          {"addresses", addresses_.names()}, {"senders", senders_.names()},
          {"forgeries", forgeries_.names()}, {"repeats", repeats_.names()},
          {"verified", verified_.names()}};
}

std::string Intake::address_of(const ServerRequest& request) const {
  if (!options_.behind_proxy) return network_of(request.peer);
  std::string_view last;
  for (const auto& [name, value] : request.headers)
    if (name == "x-forwarded-for") last = value;
  if (const std::size_t comma = last.rfind(','); comma != std::string_view::npos)
    last.remove_prefix(comma + 1);
  last = trim(last);
  return network_of(last.empty() ? std::string_view(request.peer) : last);
}

ServerReply Intake::refuse(int status, Code code, std::string_view reason, std::string_view message) {
  metrics_.refusal(reason);
  return error_reply(status, code, message);
}

ServerReply Intake::refuse_busy(double retry_s, std::string_view reason, std::string_view message) {
  metrics_.refusal(reason);
  return busy_reply(429, retry_s, Code::exhausted, message);
}

ServerReply Intake::refuse_store(const Error& error) {
  metrics_.refusal("store");
  metrics_.store_error(error.code());
  return store_reply(error);
}

/// A request that did not prove who sent it.
ServerReply Intake::failed_proof(const ServerRequest& request, std::string_view machine,
                                 std::string_view reason, std::string_view message) {
  const std::string address = address_of(request);
  const std::string sender = fmt::format("{} {}", address, machine);
  addresses_.take(address, clock_.now_ns());
  senders_.take(sender, clock_.now_ns());
  if (verified_.has(machine)) forgeries_.take(sender, clock_.now_ns());
  // Told a few times in a while, since whoever sends such a request sends many; of an address, since names
  // are easily made up.
  if (told_.take(fmt::format("{} {}", address, reason), clock_.now_ns()) == 0)
    say_(LogLevel::warning, fmt::format("refused, from {}: {}", address, message));
  return refuse(403, Code::denied, reason, message);
}

std::optional<ServerReply> Intake::over_failures(const ServerRequest& request, std::string_view machine) {
  const std::string address = address_of(request);
  const std::int64_t now_ns = clock_.now_ns();
  const std::string sender = fmt::format("{} {}", address, machine);
  // A machine that proved itself is looked at longer: ids are no secret, and a neighbour may send in its
  // name.
  double wait_s = 0;
  if (verified_.has(machine))
    wait_s = forgeries_.wait_s(sender, now_ns);
  else
    wait_s = std::max(senders_.wait_s(sender, now_ns), addresses_.wait_s(address, now_ns));
  if (wait_s == 0) return std::nullopt;
  return refuse_busy(wait_s, "too-many-failures",
                     fmt::format("too many requests from {} did not prove who sent them", address));
}

std::optional<ServerReply> Intake::wrong_head(const ServerRequest& request) {
  const bool enrols = request.path == enrol_path;
  const std::string_view wanted = enrols ? enrol_media_type : batch_media_type;
  if (const std::string type = media_type(request); type != wanted)
    return refuse(415, Code::invalid, "media-type",
                  fmt::format("Content-Type '{}': {} is wanted here", one_line(type.substr(0, 100)), wanted));
  if (!is_fingerprint(request.header("furlong-machine")))
    return refuse(400, Code::invalid, "malformed",
                  fmt::format("{}: 16 lower-case hexadecimal digits are wanted, the key's fingerprint",
                              machine_header));
  if (!is_signature(request.header("furlong-signature")))
    return refuse(400, Code::invalid, "malformed",
                  fmt::format("{}: 128 hexadecimal digits are wanted", signature_header));
  return std::nullopt;
}

std::optional<ServerReply> Intake::guard(const ServerRequest& head) {
  const bool enrols = head.path == enrol_path;
  if (head.method != "POST" || (!enrols && head.path != records_path)) return std::nullopt;
  if (auto reply = wrong_head(head)) return reply;
  const std::string_view machine = head.header("furlong-machine");
  if (enrols) {
    const double wait_s = enrolments_.wait_s(address_of(head), clock_.now_ns());
    if (wait_s == 0) return std::nullopt;
    return refuse_busy(wait_s, "too-many-enrolments",
                       fmt::format("too many enrolments from {} were refused", address_of(head)));
  }
  if (auto reply = over_failures(head, machine)) return reply;
  // Looked at, not taken: who has not proved to be this machine must not use up what is its own.
  if (const double wait_s = machines_.wait_s(machine, clock_.now_ns()); wait_s > 0)
    return refuse_busy(wait_s, "rate", fmt::format("machine {} sends too many batches", machine));
  if (const double wait_s = repeats_.wait_s(fmt::format("{} {}", address_of(head), machine), clock_.now_ns());
      wait_s > 0)
    return refuse_busy(
        wait_s, "repeats",
        fmt::format("too many batches of machine {} from {} were there already", machine, address_of(head)));
  return std::nullopt;
}

// ---- records ----

ServerReply Intake::records(const ServerRequest& request) {
  if (auto reply = guard(request)) return *std::move(reply);
  const std::string_view machine = request.header("furlong-machine");
  if (request.body.size() > options_.judge.limits.bytes)
    return refuse(413, Code::exhausted, "too-large",
                  fmt::format("the batch has {} bytes, {} are the most", request.body.size(),
                              options_.judge.limits.bytes));
  auto place = writer_.reserve(judging_bytes(request.body));
  if (!place) return refuse_busy(queue_retry_s, "queue-full", "the hub has as many batches as it can hold");
  return take(request, machine, *std::move(place));
}

Result<PublicKey> Intake::key_of(std::string_view machine, const ServerRequest& request,
                                 ServerReply& refusal) {
  const auto lease = pool_.take();
  const auto known = lease ? (*lease)->machine(machine) : Result<std::optional<Machine>>(lease.error());
  if (!known) {
    refusal = refuse_store(known.error());
    return known.error();
  }
  if (!*known || !(*known)->key)
    refusal = failed_proof(
        request, machine, "unknown-machine",
        fmt::format("machine {} is not enrolled here: give its agent a token (furlong hub token)", machine));
  else if ((*known)->state == MachineState::retired)
    refusal = failed_proof(request, machine, "retired",
                           fmt::format("machine {} is retired here: to send again it needs a new key and a "
                                       "new token (furlong hub token)",
                                       machine));
  else
    return *(*known)->key;
  return fail(Code::denied, "machine {}", machine);
}

ServerReply Intake::take(const ServerRequest& request, std::string_view machine, Writer::Place place) {
  ServerReply refusal;
  const auto key = key_of(machine, request, refusal);
  if (!key) return refusal;
  std::optional<IncomingBatch> batch;
  {
    const Turn turn(judges_);
    batch = judge(request, machine, *key, refusal);
  }
  if (!batch) return refusal;
  if (const Status checked = check_kinds(*batch); !checked) return refuse_store(checked.error());
  return write(request, std::move(place), *std::move(batch));
}

std::optional<IncomingBatch> Intake::judge(const ServerRequest& request, std::string_view machine,
                                           const PublicKey& key, ServerReply& refusal) {
  const std::string_view signature = request.header("furlong-signature");
  if (!verify_body(batch_media_type, request.body, signature, key)) {
    refusal = failed_proof(request, machine, "bad-signature",
                           fmt::format("the signature is not machine {}'s over these bytes", machine));
    return std::nullopt;
  }
  verified_.put(machine);
  if (const double wait_s = machines_.take(machine, clock_.now_ns()); wait_s > 0) {
    refusal = refuse_busy(wait_s, "rate", fmt::format("machine {} sends too many batches", machine));
    return std::nullopt;
  }
  auto batch = judge_batch(request.body, machine, clock_.wall_us(), options_.judge);
  if (!batch) {
    const Code code = batch.error().code();
    refusal = refuse(status_of(batch.error()), code, code == Code::exhausted ? "too-large" : "malformed",
                     batch.error().text());
    return std::nullopt;
  }
  batch->signature = lower(signature);
  return *std::move(batch);
}

Status Intake::check_kinds(IncomingBatch& batch) {
  FURLONG_TRY(const auto lease, pool_.take());
  return kinds_.check(batch, *lease, clock_.now_ns());
}

ServerReply Intake::write(const ServerRequest& request, Writer::Place place, IncomingBatch batch) {
  auto written = writer_.add(std::move(place), std::move(batch));
  if (!written) return refuse_store(written.error());
  std::array<std::uint64_t, 3> fates{};
  for (const Fate fate : written->outcome.fates) ++fates[static_cast<std::size_t>(fate)];
  metrics_.records("accepted", fates[static_cast<std::size_t>(Fate::accepted)]);
  metrics_.records("duplicate", fates[static_cast<std::size_t>(Fate::duplicate)]);
  metrics_.records("refused", fates[static_cast<std::size_t>(Fate::refused)]);
  if (fates[static_cast<std::size_t>(Fate::accepted)] == 0 &&
      fates[static_cast<std::size_t>(Fate::duplicate)] > 0) {
    // Bytes that were here before, which others may have come by: they must not use up the machine's share.
    machines_.give_back(written->batch.machine);
    repeats_.take(fmt::format("{} {}", address_of(request), written->batch.machine), clock_.now_ns());
  }
  ServerReply reply;
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.body = print(make_reply(written->batch, written->outcome)) + "\n";
  return reply;
}

// ---- enrolment ----

ServerReply Intake::enrol(const ServerRequest& request) {
  if (auto reply = guard(request)) return *std::move(reply);
  if (request.body.size() > most_enrolment_bytes)
    return refuse(413, Code::exhausted, "too-large",
                  fmt::format("an enrolment has at most {} bytes", most_enrolment_bytes));
  const std::string address = address_of(request);
  enrolments_.take(address, clock_.now_ns());
  // The key that signed stands in the body, so that the body is read first: small, flat and strict.
  const auto asked = parse_enrol_request(request.body);
  if (!asked)
    return refuse(status_of(asked.error()), asked.error().code(), "malformed", asked.error().text());
  if (asked->key.id() != request.header("furlong-machine"))
    return refuse(400, Code::invalid, "malformed",
                  fmt::format("{}: the key's fingerprint is {}", machine_header, asked->key.id()));
  if (!verify_body(enrol_media_type, request.body, request.header("furlong-signature"), asked->key))
    return failed_proof(request, asked->key.id(), "bad-signature",
                        "the signature is not this key's over these bytes");
  ServerReply reply = enrol_now(request, asked->token, asked->key);
  if (reply.status != 403) enrolments_.give_back(address);
  return reply;
}

ServerReply Intake::enrol_now(const ServerRequest& request, const std::string& token, const PublicKey& key) {
  const Digest digest = blake2b_256(token);
  const std::int64_t now_us = clock_.wall_us();
  struct Outcome {
    std::string replaced;
    bool refused = false;
  };
  // Owned by both: the writer may still be at it when the wait for it has ended.
  const auto outcome = std::make_shared<Outcome>();
  const Status done = writer_.run([=](Store& store) -> Status {
    const auto machine = store.enrol(digest, key, now_us);
    if (machine) {
      outcome->replaced = machine->replaces;
      return {};
    }
    if (machine.error().code() == Code::denied) {
      FURLONG_TRY(const bool good, token_is_good(store, digest, key.id(), now_us));
      outcome->refused = !good;
      // To the writer a denial is the store's own, as of a file that may not be written.
      if (!good) return fail(Code::invalid, "{}", machine.error().message());
    }
    return machine.error();
  });
  if (!done && done.error().code() != Code::timeout && outcome->refused)
    return failed_proof(request, key.id(), "token",
                        fmt::format("machine {} is not enrolled: {}", key.id(), done.error().message()));
  if (!done) return refuse_store(done.error());
  verified_.put(key.id());
  const std::string& replaced = outcome->replaced;
  say_(LogLevel::info, fmt::format("machine {} is enrolled{}", key.id(),
                                   replaced.empty() ? "" : fmt::format(", in place of {}", replaced)));
  ServerReply reply;
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.body = json_line(Json{{"schema", batch_schema}, {"machine", key.id()}}) + "\n";
  return reply;
}

}  // namespace furlong::fleet
