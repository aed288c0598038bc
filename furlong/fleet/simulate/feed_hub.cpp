// Sends a simulation's batches to a hub, as its agents would.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "furlong/base/log.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/text.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/simulate/feed.h"

namespace furlong::fleet {
namespace {

constexpr std::size_t most_queued = 32;  // batches of one sender
constexpr double longest_wait_s = 30, timeout_s = 60;

/// What senders share: counts, the first error, the pace.
class Shared {
 public:
  Shared(const HubFeed& feed, Clock& clock) : feed_(feed), clock_(clock), start_ns_(clock.now_ns()) {}

  void count(const BatchReply& reply) {
    const std::scoped_lock lock(mutex_);
    ++counts_.batches;
    counts_.accepted += reply.accepted.size();
    counts_.duplicate += reply.duplicate.size();
    counts_.refused += reply.refused.size();
    counts_.records += reply.accepted.size() + reply.duplicate.size() + reply.refused.size();
    if (!reply.refused.empty()) counts_.last_refusal = one_line(reply.refused.back().why.substr(0, 200));
  }
  void enrolled() {
    const std::scoped_lock lock(mutex_);
    ++counts_.machines;
  }
  void retried(const std::string& why) {
    constexpr std::int64_t tell_every_ns = 10'000'000'000;
    const std::scoped_lock lock(mutex_);
    ++counts_.retries;
    if (counts_.retries > 1 && clock_.now_ns() - told_ns_ < tell_every_ns) return;
    told_ns_ = clock_.now_ns();
    log_warning("{}: {}; trying again until {} s are over", feed_.url, why, feed_.give_up_s);
  }
  void failed(const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = error;
    failed_ = true;
  }
  bool has_failed() const { return failed_; }
  FeedCounts counts() {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }
  std::optional<Error> error() {
    const std::scoped_lock lock(mutex_);
    return error_;
  }
  /// Seconds to wait before these records may go.
  double wait_s(std::size_t records) {
    if (feed_.records_per_s <= 0) return 0;
    const std::scoped_lock lock(mutex_);
    const double due_s = static_cast<double>(granted_) / feed_.records_per_s;
    granted_ += records;
    return due_s - static_cast<double>(clock_.now_ns() - start_ns_) * 1e-9;
  }

 private:
  const HubFeed& feed_;
  Clock& clock_;
  const std::int64_t start_ns_;
  std::mutex mutex_;
  FeedCounts counts_;
  std::optional<Error> error_;
  std::atomic<bool> failed_ = false;
  std::uint64_t granted_ = 0;
  std::int64_t told_ns_ = 0;
};

class Sender {
 public:
  Sender(const HubFeed& feed, HttpClient& http, Clock& clock, Shared& shared, const std::stop_token& stop)
      : feed_(feed), http_(http), clock_(clock), shared_(shared), stop_(stop) {}

  bool over() const { return stop_.stop_requested() || shared_.has_failed(); }

  /// Any answer that is no "come again".
  Result<HttpResponse> post(std::string_view path, std::string_view media_type, const std::string& body,
                            const std::string& machine, const std::string& signature) {
    HttpRequest request{.method = "POST", .url = feed_.url + std::string(path)};
    request.headers = {{"Content-Type", std::string(media_type)},
                       {std::string(machine_header), machine},
                       {std::string(signature_header), signature}};
    request.body = body;
    request.timeout_s = timeout_s;
    request.ca_file = feed_.ca_file;
    const std::int64_t begin_ns = clock_.now_ns();
    double back_off_s = 0.1;
    for (;;) {
      auto response = http_.send(request, stop_);
      if (response && response->status != 429 && response->status != 503) return response;
      const bool late = static_cast<double>(clock_.now_ns() - begin_ns) * 1e-9 > feed_.give_up_s;
      if (over() || late) {
        if (!response) return response;
        return fail(Code::unavailable, "{}: it answers {} and takes nothing", feed_.url, response->status);
      }
      shared_.retried(response ? fmt::format("HTTP {}", response->status) : response.error().text());
      double wait_s = back_off_s;
      if (response)
        if (const auto wish = response->header("retry-after"))
          if (const auto seconds = parse_number(*wish)) wait_s = *seconds;
      back_off_s = std::min(2 * back_off_s, longest_wait_s);
      rest(std::clamp(wait_s, 0.0, longest_wait_s));
    }
  }

  Status send(const SimulatedBatch& batch) {
    rest(shared_.wait_s(batch.races.size()));
    if (over()) return {};
    FURLONG_TRY(const HttpResponse response,
                post("/v1/records", batch_media_type, batch.body, batch.key, batch.signature));
    if (response.status != 200) return answered(response, "a batch");
    FURLONG_TRY(const BatchReply reply, parse_batch_reply(response.body));
    shared_.count(reply);
    return {};
  }

  Status answered(const HttpResponse& response, std::string_view what) const {
    const bool denied = response.status == 401 || response.status == 403;
    return fail(denied ? Code::denied : Code::invalid, "{}: {} was answered {}: {}", feed_.url, what,
                response.status, one_line(std::string_view(response.body).substr(0, 200)));
  }

 private:
  void rest(double seconds) {
    constexpr double slice_s = 0.1;
    for (; seconds > 0 && !over(); seconds -= slice_s)
      clock_.sleep_ns(static_cast<std::int64_t>(std::min(seconds, slice_s) * 1e9));
  }

  const HubFeed& feed_;
  HttpClient& http_;
  Clock& clock_;
  Shared& shared_;
  const std::stop_token stop_;
};

Status enrol_all(const Simulation& simulation, const HubFeed& feed, Sender& sender, Shared& shared) {
  std::size_t token = 0;
  for (std::size_t i = 0; i < simulation.machines().size() && token < feed.tokens.size(); ++i) {
    if (sender.over()) return {};
    const SimulatedMachine& machine = simulation.machines()[i];
    if (machine.role == SimulatedRole::key_clone) continue;
    const KeyPair key = simulation.key(i);
    const std::string body = print(EnrolRequest{.token = feed.tokens[token++], .key = key.public_key});
    FURLONG_TRY(const HttpResponse response, sender.post("/v1/enrol", enrol_media_type, body, machine.id,
                                                         sign_body(enrol_media_type, body, key)));
    if (response.status != 200) return sender.answered(response, fmt::format("enrolment {}", token));
    FURLONG_TRY(const std::string name, parse_enrol_reply(response.body));
    if (name != machine.id)
      return fail(Code::invalid, "{}: it took '{}' for another machine", feed.url,
                  one_line(name.substr(0, 40)));
    shared.enrolled();
  }
  return {};
}

/// Batches on their way to one sender.
class Queue {
 public:
  /// Waits while it is full; false: nobody will take it.
  bool put(SimulatedBatch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() < most_queued || closed_; });
    if (closed_) return false;
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return true;
  }
  std::optional<SimulatedBatch> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !batches_.empty() || closed_; });
    if (batches_.empty()) return std::nullopt;
    SimulatedBatch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }
  void close(bool forget) {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    if (forget) batches_.clear();
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SimulatedBatch> batches_;
  bool closed_ = false;
};

}  // namespace

Result<FeedCounts> feed_hub(Simulation& simulation, const HubFeed& feed,
                            const std::function<Result<std::unique_ptr<HttpClient>>()>& client, Clock& clock,
                            const FeedProgress& progress, const std::stop_token& stop) {
  const auto count = static_cast<std::size_t>(std::max(1, feed.senders));
  std::vector<std::unique_ptr<HttpClient>> clients(count);
  for (auto& each : clients) {
    FURLONG_TRY(each, client());
  }
  Shared shared(feed, clock);
  std::vector<Sender> senders;
  for (const auto& each : clients) senders.emplace_back(feed, *each, clock, shared, stop);
  FURLONG_CHECK(enrol_all(simulation, feed, senders[0], shared));
  std::vector<Queue> queues(count);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      while (const auto batch = queues[i].take()) {
        if (const Status sent = senders[i].send(*batch); !sent) shared.failed(sent.error());
        if (senders[i].over()) queues[i].close(true);
      }
    });
  }
  BatchMaker maker(simulation, feed.most_records);
  Status made;
  while (!stop.stop_requested() && !shared.has_failed()) {
    auto batch = maker.next();
    if (!batch) made = batch.error();
    if (!batch || !*batch) break;
    // Boxes that share a key may send at the same time, as they would.
    const std::size_t to = (*batch)->machine % count;
    if (!queues[to].put(std::move(**batch))) break;
    if (progress) progress(shared.counts(), simulation.progress());
  }
  for (Queue& queue : queues) queue.close(stop.stop_requested() || shared.has_failed());
  threads.clear();
  FURLONG_CHECK(made);
  // A request that was cut off by the stop is no failure of the hub.
  if (const auto error = shared.error(); error && !stop.stop_requested()) return *error;
  return shared.counts();
}

}  // namespace furlong::fleet
