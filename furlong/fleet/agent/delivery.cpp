#include "furlong/fleet/agent/delivery.h"

#include <algorithm>
#include <cmath>

#include "furlong/base/hash.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/record/record.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t usual_records = 200;
constexpr std::size_t most_batch_bytes = 4u << 20;
constexpr double first_retry_s = 1;
constexpr double denied_retry_s = 600;
constexpr double longest_wish_s = 3600;
constexpr double idle_s = 5;
constexpr double enrol_timeout_s = 60;
constexpr double stall_timeout_s = 60;
constexpr double report_every_s = 3600;

/// The batch as a whole: smaller ones may fare better. 408: it came too slowly for the hub.
bool is_refused_whole(int status) { return status == 400 || status == 408 || status == 413 || status == 422; }

std::string enrolled_fact(const HubConfig& hub) { return "enrolled " + hub.url; }

/// The hub's words, for a message: foreign text, cut.
std::string brief(const HttpResponse& response) {
  const std::string words = one_line(std::string_view(response.body).substr(0, 160));
  return fmt::format("HTTP {}{}{}", response.status, words.empty() ? "" : ": ", words);
}

/// Seconds of a Retry-After; 0 for the form with a date, since our clock may be anything: then our own wait.
double wish_of(const HttpResponse& response) {
  const auto header = response.header("retry-after");
  if (!header) return 0;
  const auto seconds = parse_integer(trim(*header));
  return seconds && *seconds > 0 ? std::min(static_cast<double>(*seconds), longest_wish_s) : 0;
}

}  // namespace

Delivery::Delivery(HubConfig hub, KeyPair key, HttpClient& http, Spool& spool, Files& files, Clock& clock,
                   std::uint64_t seed, Note note)
    : hub_(std::move(hub)),
      key_(key),
      http_(http),
      spool_(spool),
      files_(files),
      clock_(clock),
      random_(seed, "delivery"),
      note_(std::move(note)),
      most_records_(usual_records) {
  state_.state = "waiting";
  note_enrolled();
}

HubState Delivery::state() {
  const std::scoped_lock lock(mutex_);
  HubState state = state_;
  state.retry_in_s = std::max(0.0, static_cast<double>(next_try_ns_ - clock_.now_ns()) * 1e-9);
  return state;
}

double Delivery::step(const std::stop_token& stop) {
  {
    const std::scoped_lock lock(mutex_);
    const std::int64_t left_ns = next_try_ns_ - clock_.now_ns();
    if (left_ns > 0) return static_cast<double>(left_ns) * 1e-9;
  }
  retry_after_s_ = 0;
  slow_down_ = false;
  if (const Status enrolled = enrol(stop); !enrolled) return failed(enrolled.error());
  if (const Status told = send_report(stop); !told) return failed(told.error());
  const auto sent = send_batch(stop);
  if (!sent) return failed(sent.error());
  if (!*sent) return idle_s;
  succeeded();
  return 0;
}

Result<HttpResponse> Delivery::post(std::string_view path, std::string_view media_type, std::string body,
                                    double timeout_s, const std::stop_token& stop) {
  HttpRequest request{.method = "POST", .url = hub_.url + std::string(path)};
  request.headers = {{"Content-Type", std::string(media_type)},
                     {std::string(machine_header), key_.public_key.id()},
                     {std::string(signature_header), sign_body(media_type, body, key_)}};
  request.body = std::move(body);
  request.ca_file = hub_.ca_file;
  request.timeout_s = timeout_s;
  request.stall_timeout_s = stall_timeout_s;
  auto response = http_.send(request, stop);
  if (response) retry_after_s_ = wish_of(*response);
  return response;
}

Result<std::string> Delivery::token() {
  if (!hub_.enrol_token.empty()) return hub_.enrol_token;
  FURLONG_TRY(const std::string text, files_.read(hub_.enrol_token_file, 4096));
  return std::string(trim(text));
}

Status Delivery::enrol(const std::stop_token& stop) {
  if (hub_.enrol_token.empty() && hub_.enrol_token_file.empty()) return {};
  FURLONG_TRY(const std::string known, spool_.fact(enrolled_fact(hub_)));
  const std::string machine = key_.public_key.id();
  const bool ours = known.substr(0, known.find(' ')) == machine;
  const auto secret = token();
  // It is used once, and whoever set it up may have removed it since.
  if (ours && (!secret || secret->empty())) return {};
  if (!secret) return secret.error();
  // The fact holds for one token: a new one says that the machine is to be enrolled again.
  const std::string fact = machine + " " + blake2b_256(*secret).brief();
  if (known == fact && !unknown_) return {};
  if (!ours) return ask_to_enrol(*secret, fact, stop);
  if (clock_.now_ns() < next_enrol_ns_) return {};
  const Status done = ask_to_enrol(*secret, fact, stop);
  if (done || !slow_down_) return done;
  // A token that was used, or is wrong, must not keep a machine from the hub that may know it all the same.
  next_enrol_ns_ = clock_.now_ns() + static_cast<std::int64_t>(denied_retry_s * 1e9);
  slow_down_ = false;
  note_("hub: " + done.error().text());
  return {};
}

Status Delivery::ask_to_enrol(const std::string& token, const std::string& fact,
                              const std::stop_token& stop) {
  const EnrolRequest request{.token = token, .key = key_.public_key};
  FURLONG_TRY(const HttpResponse response,
              post("/v1/enrol", enrol_media_type, print(request), enrol_timeout_s, stop));
  if (response.status != 200) {
    slow_down_ = response.status == 401 || response.status == 403;
    return fail(slow_down_ ? Code::denied : Code::unavailable, "{}: enrolment: {}", hub_.url,
                brief(response));
  }
  FURLONG_TRY(const std::string machine, parse_enrol_reply(response.body));
  if (machine != key_.public_key.id())
    return fail(Code::invalid, "{}: enrolment: the reply names the machine '{}', this is {}", hub_.url,
                one_line(machine.substr(0, 40)), key_.public_key.id());
  FURLONG_CHECK(spool_.set_fact(enrolled_fact(hub_), fact));
  unknown_ = false;
  note_(fmt::format("enrolled at {} as machine {}", hub_.url, machine));
  note_enrolled();
  succeeded();
  return {};
}

void Delivery::note_enrolled() {
  const auto known = spool_.fact(enrolled_fact(hub_));
  const std::scoped_lock lock(mutex_);
  state_.enrolled = known && known->substr(0, known->find(' ')) == key_.public_key.id();
}

void Delivery::tell(MachineReport report) {
  const std::scoped_lock lock(mutex_);
  report_ = std::move(report);
}

Status Delivery::send_report(const std::stop_token& stop) {
  MachineReport report;
  {
    const std::scoped_lock lock(mutex_);
    report = report_;
  }
  if (report.agent.empty() || (report == reported_ && clock_.now_ns() < next_report_ns_)) return {};
  const RecordBatch batch{.id = record::make_record_id(clock_, random_),
                          .machine = key_.public_key.id(),
                          .lines = {},
                          .agent = report.agent,
                          .manifest = report.manifest,
                          .canary = report.canary};
  FURLONG_TRY(std::string body, print(batch));
  FURLONG_TRY(const HttpResponse response,
              post("/v1/records", batch_media_type, std::move(body), enrol_timeout_s, stop));
  if (response.status == 401 || response.status == 403) {
    slow_down_ = unknown_ = true;
    return unknown_key(response);
  }
  // A hub that cannot read it is told again in an hour; records do not wait for that.
  const bool refused = is_refused_whole(response.status);
  if (response.status != 200 && !refused) return fail(Code::unavailable, "{}: {}", hub_.url, brief(response));
  if (refused)
    note_(fmt::format("hub: {}: this machine's report was refused: {}", hub_.url, brief(response)));
  reported_ = report;
  next_report_ns_ = clock_.now_ns() + static_cast<std::int64_t>(report_every_s * 1e9);
  if (!refused) succeeded();
  return {};
}

Error Delivery::unknown_key(const HttpResponse& response) const {
  return Error(Code::denied,
               fmt::format("{}: {}: it does not know this machine's key ({}); enrol it with a new "
                           "token (guide for fleet operators: when a machine is refused)",
                           hub_.url, brief(response), key_.public_key.id()));
}

Result<bool> Delivery::send_batch(const std::stop_token& stop) {
  const auto make_id = [&] { return record::make_record_id(clock_, random_); };
  FURLONG_TRY(const auto batch,
              spool_.next_batch(most_records_, most_batch_bytes, key_.public_key.id(), make_id));
  if (!batch) return false;
  FURLONG_TRY(std::string body, print(*batch));
  const auto response = post("/v1/records", batch_media_type, std::move(body), records_timeout_s, stop);
  if (!response) {
    timeouts_ = response.error().code() == Code::timeout ? timeouts_ + 1 : 0;
    if (timeouts_ >= 2) {
      // Too much for this way, or for this hub. What it has stored of it all the same, it knows by its ids.
      timeouts_ = 0;
      most_records_ = std::max<std::size_t>(1, batch->lines.size() / 2);
      FURLONG_CHECK(spool_.release(batch->id));
    }
    return response.error();
  }
  timeouts_ = 0;
  FURLONG_CHECK(take_reply(*batch, *response));
  unknown_ = false;
  return true;
}

Status Delivery::take_reply(const RecordBatch& batch, const HttpResponse& response) {
  if (is_refused_whole(response.status)) return refused_whole(batch, response);
  if (response.status == 401 || response.status == 403) {
    slow_down_ = unknown_ = true;
    return unknown_key(response);
  }
  if (response.status != 200) return fail(Code::unavailable, "{}: {}", hub_.url, brief(response));
  const auto reply = parse_batch_reply(response.body);
  if (!reply)
    return Error(reply.error()).with(fmt::format("{}: HTTP 200 with a reply of another sort", hub_.url));
  FURLONG_TRY(const Spool::Settled settled, spool_.settle(batch, *reply, iso_time(clock_.wall_us())));
  for (const auto& each : reply->refused)
    note_(fmt::format("the hub refused record {}: {}", one_line(each.id.substr(0, 40)),
                      one_line(each.why.substr(0, 200))));
  if (settled.accepted + settled.duplicate + settled.refused == 0)
    return fail(Code::invalid, "{}: its reply names none of the {} records sent", hub_.url,
                batch.lines.size());
  most_records_ = std::min(usual_records, most_records_ * 2);
  return {};
}

Status Delivery::refused_whole(const RecordBatch& batch, const HttpResponse& response) {
  // One record may spoil a batch, and one too many make it too large: smaller ones find which. A single
  // record that is refused so waits behind the others; it is not dropped, since it may be the hub that errs.
  most_records_ = std::max<std::size_t>(1, batch.lines.size() / 2);
  FURLONG_CHECK(spool_.release(batch.id));
  return fail(Code::invalid, "{}: a batch of {} records was refused: {}", hub_.url, batch.lines.size(),
              brief(response));
}

double Delivery::failed(const Error& error) {
  const std::scoped_lock lock(mutex_);
  ++state_.failures;
  const double doubled = first_retry_s * std::pow(2.0, std::min(state_.failures - 1, 20));
  double wait_s = slow_down_ ? denied_retry_s : std::min(doubled, hub_.retry_most_s);
  // Half of it at random: machines that lost one hub at one moment do not all come back at one.
  wait_s *= 0.5 + 0.5 * random_.uniform();
  wait_s = std::max(wait_s, retry_after_s_);
  next_try_ns_ = clock_.now_ns() + static_cast<std::int64_t>(wait_s * 1e9);
  const std::string text = error.text();
  if (text != state_.error)
    note_(fmt::format("hub: {} (attempt {}, again in {:.0f} s; nothing is lost)", text, state_.failures,
                      wait_s));
  state_.error = text;
  state_.state = slow_down_ ? "denied" : "retrying";
  return wait_s;
}

void Delivery::succeeded() {
  const std::scoped_lock lock(mutex_);
  if (state_.failures > 0) note_(fmt::format("hub: {} takes records again", hub_.url));
  state_.failures = 0;
  state_.error.clear();
  state_.state = "ok";
  state_.last_ok = iso_time(clock_.wall_us());
}

}  // namespace furlong::fleet
