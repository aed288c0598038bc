#include "furlong/fleet/store/store.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::fleet {

std::string_view machine_state_name(MachineState state) {
  return state == MachineState::active ? "active" : "retired";
}

Status Store::lines(const RaceFilter& filter, const std::function<bool(std::string_view line)>& visit) {
  RaceFilter page = filter;
  std::size_t left = filter.limit;
  while (left > 0) {
    page.limit = std::min<std::size_t>(left, 1000);
    FURLONG_TRY(const auto summaries, races(page));
    for (const RaceSummary& summary : summaries) {
      FURLONG_TRY(const auto found, race(summary.id));
      if (found && !visit(found->line)) return {};  // one that went since is none
    }
    if (summaries.size() < page.limit) return {};
    left -= summaries.size();
    page.before = summaries.back().id;
  }
  return {};
}

Result<std::unique_ptr<Store>> open_store(std::span<const StoreKind> kinds, std::string_view url,
                                          const StoreKind::Options& options) {
  const bool bare_file = url.ends_with(".sqlite") || url.ends_with(".db");
  const std::size_t colon = url.find(':');
  std::string_view scheme = colon == std::string_view::npos ? "" : url.substr(0, colon);
  std::string full(url);
  if (bare_file && scheme.find('/') != std::string_view::npos) scheme = "";
  if (bare_file && scheme.empty()) {
    scheme = "sqlite";
    full = "sqlite:" + full;
  }
  if (scheme == "postgres") scheme = "postgresql";
  std::vector<std::string> examples;
  for (const StoreKind& kind : kinds) {
    if (kind.scheme == scheme) return kind.open(full, options);
    examples.push_back(kind.example);
  }
  return fail(Code::invalid, "'{}' is no store; the kinds are {}", one_line(shown_url(url)),
              join(examples, " and "));
}

std::string shown_url(std::string_view url) {
  // scheme://user:password@host/…; also ?password=…, as libpq takes it.
  std::string shown(url);
  if (const std::size_t begin = shown.find("://"); begin != std::string::npos) {
    const std::size_t end = shown.find_first_of("/?", begin + 3);
    const std::size_t at = shown.rfind('@', end == std::string::npos ? std::string::npos : end);
    const std::size_t colon = shown.find(':', begin + 3);
    if (at != std::string::npos && at > begin && colon != std::string::npos && colon < at)
      shown.replace(colon + 1, at - colon - 1, "***");
  }
  for (std::size_t at = shown.find("password="); at != std::string::npos;
       at = shown.find("password=", at + 9)) {
    const std::size_t from = at + 9;
    const std::size_t end = shown.find_first_of("& ", from);
    shown.replace(from, (end == std::string::npos ? shown.size() : end) - from, "***");
  }
  return shown;
}

bool is_newer_header(std::string_view id, std::string_view before, std::int64_t received_us) {
  constexpr std::int64_t ahead_ms = 600'000;
  const auto known = parse_record_id(before);
  if (!known) return true;
  std::int64_t known_ms = 0;
  for (std::size_t i = 0; i < 6; ++i) known_ms = known_ms << 8 | (*known)[i];
  return id > before || known_ms > received_us / 1000 + ahead_ms;
}

}  // namespace furlong::fleet
