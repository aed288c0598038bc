#include "furlong/fleet/hub/hub.h"

#include <algorithm>

#include "apps/furlong/agent_session.h"
#include "apps/furlong/commands.h"
#include "apps/furlong/hub_session.h"
#include "apps/furlong/session.h"
#include "apps/furlong/stores.h"
#include "apps/furlong/version.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/os/open_files.h"
#include "furlong/base/text.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view default_listen = "127.0.0.1:8470";

/// "127.0.0.1:8470", "[::1]:8470".
Status take_listen(const std::string& text, fleet::HttpServerOptions& http) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] {
    return fail(Code::invalid, "--listen '{}': ADDRESS:PORT is wanted, such as {}, 0.0.0.0:8470 or [::]:8470",
                text, default_listen);
  };
  if (colon == std::string::npos) return wrong();
  std::string_view address = std::string_view(text).substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  const auto port = parse_integer(std::string_view(text).substr(colon + 1));
  if (address.empty() || !port || *port < 0 || *port > 65535) return wrong();
  http.address = address;
  http.port = static_cast<std::uint16_t>(*port);
  return {};
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

Status take_tls(const Arguments& arguments, fleet::HttpServerOptions& http) {
  if (arguments.given("--tls-cert") != arguments.given("--tls-key"))
    return fail(Code::invalid, "--tls-cert and --tls-key go together");
  http.certificate = arguments.value("--tls-cert");
  http.key = arguments.value("--tls-key");
  return {};
}

Status take_limits(const Arguments& arguments, fleet::HubOptions& options) {
  FURLONG_TRY(options.keep_days, arguments.number("--keep-days", 0, 0, 36'600));
  FURLONG_TRY(options.refresh_s, arguments.number("--refresh-s", options.refresh_s, 0.1, 86'400));
  FURLONG_TRY(options.batches_per_minute,
              arguments.number("--batches-per-minute", options.batches_per_minute, 1, 1e6));
  FURLONG_TRY(const double window_days,
              arguments.number("--window-days", options.aggregate.window_days, 0.01, 3660));
  options.aggregate.window_days = options.regressions.window_days = window_days;
  FURLONG_TRY(const auto samples,
              arguments.integer("--min-samples", options.aggregate.min_samples, 1, 1'000'000));
  options.aggregate.min_samples = static_cast<int>(samples);
  const std::string by = arguments.value("--by", "rate");
  options.aggregate.by = by == "energy" || by == "mhw" ? fleet::By::energy : fleet::By::rate;
  FURLONG_TRY(options.regressions.threshold_pct,
              arguments.number("--regression-pct", options.regressions.threshold_pct, 0, 99.9));
  return {};
}

Result<fleet::HubOptions> hub_options(const Arguments& arguments) {
  fleet::HubOptions options;
  options.version = version_text();
  FURLONG_CHECK(take_listen(arguments.value("--listen", default_listen), options.http));
  FURLONG_CHECK(take_tls(arguments, options.http));
  FURLONG_CHECK(take_limits(arguments, options));
  options.behind_proxy = arguments.flag("--behind-proxy");
  options.manifest = arguments.value("--manifest");
  if (arguments.given("--stop-key")) {
    if (!arguments.given("--manifest"))
      return fail(Code::invalid, "--stop-key signs stops into the file of --manifest, which is missing");
    FURLONG_TRY(options.stop_key, read_signing_key(arguments.value("--stop-key")));
  }
  options.web = arguments.given("--web") ? fs::path(arguments.value("--web")) : shipped_web();
  return options;
}

void tell_where(const fleet::HubOptions& options, std::uint16_t port) {
  const bool tls = !options.http.certificate.empty();
  const std::string& address = options.http.address;
  const bool v6 = address.find(':') != std::string::npos;
  print_log(LogLevel::info, fmt::format("hub: listens on {}://{}{}{}:{}", tls ? "https" : "http",
                                        v6 ? "[" : "", address, v6 ? "]" : "", port));
  if (!tls && !options.behind_proxy && !is_loopback(address))
    print_log(LogLevel::warning,
              "hub: plain HTTP beyond this machine, which agents refuse: give it --tls-cert and --tls-key, "
              "or put it "
              "behind a proxy that has them (--behind-proxy)");
  print_log(LogLevel::info, options.web.empty() ? "hub: without the dashboard's files (--web)"
                                                : fmt::format("hub: dashboard of {}", options.web.string()));
}

/// Each connection is an open file, and so is each of the store's.
void allow_connections(fleet::HttpServerOptions& http) {
  constexpr std::uint64_t other_files = 512;
  const auto wanted = static_cast<std::uint64_t>(http.most_connections) + other_files;
  const std::uint64_t allowed = allow_open_files(wanted);
  if (allowed == 0 || allowed >= wanted) return;
  http.most_connections =
      static_cast<int>(std::max<std::uint64_t>(64, allowed - std::min(allowed, other_files)));
  print_log(LogLevel::warning,
            fmt::format("hub: {} open files are allowed here, which is enough for {} connections; {} want "
                        "{} (ulimit -n, or LimitNOFILE of the unit)",
                        allowed, http.most_connections, wanted - other_files, wanted));
}

Result<int> run(const Arguments& arguments) {
  if (!arguments.given("--store"))
    return fail(Code::invalid, "--store URL is missing: sqlite:FILE or postgresql://HOST/DATABASE");
  const std::string url = arguments.value("--store");
  FURLONG_TRY(fleet::HubOptions options, hub_options(arguments));
  const std::stop_token stop = stop_on_interrupt();
  fleet::HubSurroundings with;
  // Made now or never: a store that goes away while the hub runs is told, and not made anew, empty.
  FURLONG_CHECK(fleet::open_store(store_kinds(), url));
  with.open_store = [url] { return fleet::open_store(store_kinds(), url, {.create = false}); };
  with.files = &system_files();
  with.clock = &system_clock();
  with.say = print_log;
  options.lattices = shipped_lattices();
  allow_connections(options.http);
  FURLONG_TRY(const auto hub, fleet::Hub::start(options, with));
  tell_where(options, hub->port());
  FURLONG_CHECK(hub->run(stop));
  print_log(LogLevel::info, "hub: stopped; what was acknowledged is in the store");
  return exit_ok;
}

std::vector<OptionSpec> hub_options_help() {
  return {
      {.name = "--listen",
       .value_name = "ADDR:PORT",
       .help = "Where to listen. Default: 127.0.0.1:8470. Port 0: any that is free."},
      {.name = "--store",
       .value_name = "URL",
       .help = "sqlite:FILE or postgresql://HOST/DATABASE. Required."},
      {.name = "--manifest",
       .value_name = "FILE",
       .help = "The fleet manifest to serve: FOLDER/manifest.json of furlong fleet publish.",
       .complete = "file"},
      {.name = "--stop-key",
       .value_name = "FILE",
       .help = "Sign a stop into the manifest when the canaries' races show a regression.",
       .complete = "file"},
      {.name = "--web",
       .value_name = "DIR",
       .help = "The dashboard's files. Default: those beside the program.",
       .complete = "folder"},
      {.name = "--tls-cert", .value_name = "FILE", .help = "Certificate chain (PEM).", .complete = "file"},
      {.name = "--tls-key", .value_name = "FILE", .help = "Its key (PEM).", .complete = "file"},
      {.name = "--behind-proxy",
       .value_name = "",
       .help = "Clients' addresses are the last ones of X-Forwarded-For."},
      {.name = "--keep-days",
       .value_name = "N",
       .help = "Forget races older than N days, once an hour. Default: none is forgotten."},
      {.name = "--window-days", .value_name = "N", .help = "Races that count. Default: 7."},
      {.name = "--min-samples", .value_name = "N", .help = "Of a variant, before it can win. Default: 3."},
      {.name = "--by",
       .value_name = "WHAT",
       .help = "What winners are chosen by. Default: rate.",
       .choices = {"rate", "energy", "mhs", "mhw"}},
      {.name = "--regression-pct", .value_name = "P", .help = "Slower by less is no regression. Default: 1."},
      {.name = "--refresh-s",
       .value_name = "S",
       .help = "Aggregates are made anew at most so often. Default: 10."},
      {.name = "--batches-per-minute",
       .value_name = "N",
       .help = "Of one machine, in the long run. Default: 120."}};
}

}  // namespace

CommandSpec hub_command() {
  return {
      .name = "hub",
      .summary = "Take in the fleet's race records, answer what they say, serve manifest and dashboard.",
      .description =
          "Runs until Ctrl-C or SIGTERM; logs to standard error. Machines enrol with a token of furlong hub "
          "token and send signed batches; a batch is acknowledged once it is in the store. The figures are "
          "at "
          "/v1/… (docs/formats/hub-api.md), for Prometheus at /metrics, and as a dashboard at /.",
      .positionals = {},
      .options = hub_options_help(),
      .examples = {{"furlong hub --store sqlite:hub.sqlite", "On this machine alone: http://127.0.0.1:8470"},
                   {"furlong hub --listen 0.0.0.0:8470 --store postgresql://furlong@db/fleet --tls-cert "
                    "hub.pem --tls-key hub.key --manifest fleet/manifest.json --stop-key stop.key",
                    "For a fleet."}},
      .run = run};
}

}  // namespace furlong::app
