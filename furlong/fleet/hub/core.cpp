#include "furlong/fleet/hub/core.h"

#include <algorithm>

#include "furlong/fleet/hub/reply.h"

namespace furlong::fleet {
namespace {

constexpr double busy_retry_s = 1;

IntakeOptions intake_options(const HubOptions& options) {
  IntakeOptions intake;
  intake.judge.limits.bytes = options.http.most_body_bytes;
  intake.judge.future_s = options.future_s;
  intake.batches_per_minute = options.batches_per_minute;
  intake.enrolments_per_minute = options.enrolments_per_minute;
  intake.behind_proxy = options.behind_proxy;
  intake.kinds = options.kinds;
  return intake;
}

/// The one that machines obey; nullptr: none.
std::shared_ptr<const record::Tuning> tuning_of(const std::shared_ptr<const Serving>& serving) {
  if (!serving->checked || !serving->checked->manifest || !serving->checked->manifest->tuning) return nullptr;
  return {serving, &*serving->checked->manifest->tuning};
}

Writer::Options writer_options(const HubOptions& options) {
  Writer::Options writer;
  writer.most_places = options.most_batches;
  writer.most_bytes = options.most_batch_memory;
  writer.commit_batches = options.commit_batches;
  writer.wait_s = options.http.handler_timeout_s / 2;
  return writer;
}

}  // namespace

HubCore::HubCore(const HubOptions& options, const HubSurroundings& with)
    : options_(options),
      with_(with),
      started_ns_(with.clock->now_ns()),
      pool_(with.open_store),
      manifest_(options.manifest, *with.files, *with.clock, with.say),
      canaries_(options.stop_key, options.regressions, with.open_store, manifest_, with.say),
      audits_(options.lattices, with.open_store, *with.clock, with.say),
      learner_({options.aggregate, options.regressions, options.refresh_s,
                [this] { return tuning_of(manifest_.now()); }},
               with.open_store, *with.clock, with.say,
               [this](const Learned& learned) {
                 canaries_.look(learned);
                 audits_.refresh(learned);
               }),
      pruner_(options.keep_days, with.open_store, *with.clock, with.say),
      writer_(with.open_store, writer_options(options), [this] { learner_.nudge(); }),
      intake_(intake_options(options), writer_, pool_, metrics_, *with.clock, with.say),
      pages_({.pool = pool_,
              .learner = learner_,
              .audits = audits_,
              .manifest = manifest_,
              .canaries = canaries_,
              .metrics = metrics_,
              .clock = *with.clock,
              .version = options.version,
              .started_ns = started_ns_}),
      router_(routes()) {}

Result<std::unique_ptr<HubCore>> HubCore::open(const HubOptions& options, const HubSurroundings& with) {
  FURLONG_TRY(const auto store, with.open_store());
  FURLONG_TRY(const StoreTotals totals, store->totals());
  std::unique_ptr<HubCore> core(new HubCore(options, with));
  if (!options.web.empty()) {
    FURLONG_TRY(core->web_, WebFiles::read(options.web, *with.files));
  }
  core->manifest_.look();
  with.say(LogLevel::info,
           fmt::format("store: {}, {} races of {} machines", totals.version, totals.races, totals.machines));
  return core;
}

HubCore::~HubCore() { stop(); }

std::vector<Route> HubCore::routes() {
  std::vector<Route> routes = pages_.routes();
  routes.push_back(
      {"POST",
       std::string(enrol_path),
       {},
       [this](const ServerRequest& request, const std::string&) { return intake_.enrol(request); },
       Share::enrolment});
  routes.push_back(
      {"POST",
       std::string(records_path),
       {},
       [this](const ServerRequest& request, const std::string&) { return intake_.records(request); },
       Share::batch});
  routes.push_back({"GET", "/metrics", {}, [this](const ServerRequest& request, const std::string&) {
                      return metrics_page(request);
                    }});
  return routes;
}

void HubCore::finish(std::string_view route, std::int64_t begin_ns, bool page, ServerReply& reply) {
  add_security_headers(reply, page);
  metrics_.request(route, reply.status, static_cast<double>(with_.clock->now_ns() - begin_ns) * 1e-9);
}

std::optional<ServerReply> HubCore::guard(const ServerRequest& head) {
  const std::int64_t begin_ns = with_.clock->now_ns();
  auto reply = intake_.guard(head);
  if (reply) finish(head.path, begin_ns, false, *reply);
  return reply;
}

ServerReply HubCore::handle(const ServerRequest& request) {
  const std::int64_t begin_ns = with_.clock->now_ns();
  ServerReply reply;
  const bool page = !Router::is_interface(request.path);
  std::string_view route = page ? "/" : "other";
  if (page) {
    reply = web_.reply(request);
  } else {
    const Router::Found found = router_.find(request);
    if (found.route != nullptr) route = found.route->path;
    reply = found.route != nullptr ? in_turn(*found.route, request, found.item) : found.refusal;
  }
  finish(route, begin_ns, page, reply);
  return reply;
}

/// Whoever reaches the hub may ask for pages, and a page may cost seconds: they must not take the threads
/// that batches, enrolments and probes need.
ServerReply HubCore::in_turn(const Route& route, const ServerRequest& request, const std::string& item) {
  Gate* gate = nullptr;
  if (route.share == Share::page) gate = &pages_in_hand_;
  if (route.share == Share::probe) gate = &probes_in_hand_;
  if (route.share == Share::enrolment) gate = &enrolments_in_hand_;
  if (gate == nullptr) return route.handle(request, item);
  const std::optional<Gate::Entry> entry = gate->enter();
  if (!entry)
    return busy_reply(503, busy_retry_s, Code::exhausted,
                      "the hub answers as many requests of this kind as it can at one time");
  return route.handle(request, item);
}

void HubCore::start() {
  learner_.start();
  pruner_.start();
}

void HubCore::stop() {
  pruner_.stop();
  writer_.stop();
  learner_.stop();
}

void HubCore::tick() {
  manifest_.look();
  say_state_of_writes();
}

void HubCore::say_state_of_writes() {
  const WriterCounts counts = writer_.counts();
  const std::string failing =
      counts.failing ? fmt::format("{}: {}", store_state(counts.failing->code()), counts.failing->text())
                     : "";
  if (failing == failing_) return;
  if (!failing.empty())
    with_.say(LogLevel::error,
              fmt::format("store: {}; {}", failing,
                          counts.failing_batches ? "batches are answered 503 and sent again by the agents"
                                                 : "enrolments are answered 503 and asked for again"));
  else
    with_.say(LogLevel::info, "store: it can be written to again");
  failing_ = failing;
}

}  // namespace furlong::fleet
