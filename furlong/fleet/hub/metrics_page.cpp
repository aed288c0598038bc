// GET /metrics: the counters, and what is so now.

#include "furlong/fleet/hub/core.h"

namespace furlong::fleet {
namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

void print_writer(const WriterCounts& counts, PrometheusText& text) {
  text.one("commits_total", "counter", "Transactions of batches that went well.", number(counts.commits));
  text.one("committed_batches_total", "counter", "Batches in them.", number(counts.batches));
  text.one("write_failures_total", "counter", "Writes that failed.", number(counts.failures));
  text.one("store_write_seconds_total", "counter", "Time spent in transactions.", counts.store_s);
  text.one("queue_wait_seconds_total", "counter", "Time that batches waited for their transaction.",
           counts.wait_s);
  text.one("queued_batches", "gauge", "Batches that wait for their transaction.", number(counts.queued));
  text.one("batches_in_hand", "gauge", "Batches being judged, queued or written.", number(counts.places));
  text.one("batch_memory_bytes", "gauge", "Memory that these may take.", number(counts.place_bytes));
  text.one("writes_failing", "gauge", "1 while the last write failed.", counts.failing ? 1 : 0);
}

void print_store(const StoreTotals& totals, bool answers, PrometheusText& text) {
  text.one("store_up", "gauge", "1 while the store answers.", answers ? 1 : 0);
  text.one("store_bytes", "gauge", "Bytes of the store on its disk.", number(totals.bytes));
  text.one("store_races", "gauge", "Races kept.", number(totals.races));
  text.one("store_batches", "gauge", "Batches kept.", number(totals.batches));
  text.one("store_machines", "gauge", "Machines known.", number(totals.machines));
}

void print_http(const HttpServerCounts& counts, PrometheusText& text) {
  text.one("http_connections_total", "counter", "Connections taken.", number(counts.accepted));
  text.one("http_refused_connections_total", "counter", "Connections beyond a limit.",
           number(counts.refused_connections));
  text.one("http_requests_total", "counter", "Requests whose head was read whole.", number(counts.requests));
  text.one("http_timeouts_total", "counter", "Handshakes, requests, handlers and replies that took too long.",
           number(counts.timeouts));
  text.one("http_malformed_total", "counter", "What was no HTTP, and handshakes that failed.",
           number(counts.malformed));
  text.one("http_too_large_total", "counter", "Requests over the limits of size.", number(counts.too_large));
  text.one("http_too_busy_total", "counter", "Requests refused for want of memory or threads.",
           number(counts.too_busy));
  text.one("http_failed_total", "counter", "Requests that failed inside the hub.", number(counts.failed));
  text.one("http_connections", "gauge", "Connections now.", number(counts.connections));
  text.one("http_body_bytes", "gauge", "Bytes of bodies in hand now.", number(counts.body_bytes));
}

void print_rollout(const Serving& serving, const CanaryReport& canaries, PrometheusText& text) {
  const bool has = serving.checked && serving.checked->manifest;
  text.one("manifest_version", "gauge", "Of the manifest that is served; 0: none.",
           has ? number(serving.checked->manifest->version) : 0);
  text.one("manifest_stopped", "gauge", "1 while a stop holds for it.", serving.stopped() ? 1 : 0);
  text.one("manifest_problem", "gauge", "1 while its file is not what is served, or no machine takes it.",
           serving.problem.empty() ? 0 : 1);
  text.one("stops_signed_total", "counter", "Stops that this hub signed.", number(canaries.stops));
  text.one("canary_races", "gauge", "Races of the canaries since the manifest was issued.",
           number(canaries.races));
  text.one("canary_regressions", "gauge", "Regressions in them.", number(canaries.regressions));
}

}  // namespace

ServerReply HubCore::metrics_page(const ServerRequest&) {
  PrometheusText text;
  text.family("build_info", "gauge", "Always 1; the version of Furlong and of the store.");
  const StoreTotals totals = learner_.totals();
  text.sample(1, {{"version", options_.version}, {"store", totals.version}});
  const std::int64_t now_ns = with_.clock->now_ns();
  text.one("uptime_seconds", "gauge", "Since the start.", static_cast<double>(now_ns - started_ns_) * 1e-9);
  metrics_.print(text);
  print_writer(writer_.counts(), text);
  print_store(totals, !learner_.problem(), text);
  text.one("pruned_races_total", "counter", "Races forgotten for their age.", number(pruner_.forgotten()));
  if (const auto learned = learner_.latest()) {
    text.one("aggregate_age_seconds", "gauge", "Since the aggregates were made.",
             static_cast<double>(now_ns - learned->made_ns) * 1e-9);
    text.one("aggregate_seconds", "gauge", "That making them took.", learned->seconds);
    text.one("aggregate_races", "gauge", "Races in their window.", number(learned->races));
    text.one("regressions", "gauge", "Variants that got slower.", number(learned->regression_count));
  }
  text.one("aggregate_stale_seconds", "gauge", "How far the aggregates lag behind the store.",
           learner_.stale_s());
  text.family("limit_names", "gauge", "Names that the limits remember, by limit.");
  for (const auto& [limit, names] : intake_.remembered()) text.sample(number(names), {{"limit", limit}});
  print_rollout(*manifest_.now(), canaries_.latest(), text);
  if (const HttpServer* server = server_) print_http(server->counts(), text);
  ServerReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.headers = {{"Cache-Control", "no-store"}};
  reply.body = text.take();
  return reply;
}

}  // namespace furlong::fleet
