#include "furlong/fleet/store/store.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "furlong/base/text.h"

namespace furlong::fleet {

std::string_view machine_state_name(MachineState state) {
  return state == MachineState::active ? "active" : "retired";
}

Machine merged(const Machine& there, const Machine& copy) {
  const auto age = [](const Machine& one) { return std::tie(one.enrolled_us, one.seen_us); };
  Machine machine = age(there) > age(copy) ? there : copy;
  if (there.state == MachineState::retired || copy.state == MachineState::retired)
    machine.state = MachineState::retired;
  machine.enrolled_us = std::max(there.enrolled_us, copy.enrolled_us);
  machine.seen_us = std::max(there.seen_us, copy.seen_us);
  machine.accepted = std::max(there.accepted, copy.accepted);
  machine.duplicate = std::max(there.duplicate, copy.duplicate);
  machine.refused = std::max(there.refused, copy.refused);
  return machine;
}

Token merged(const Token& there, const Token& copy) {
  Token token = copy;
  if (!there.machine.empty()) token.machine = there.machine;
  return token;
}

Result<std::vector<RaceSummary>> Store::races(const RaceFilter& filter) {
  RaceFilter rest = filter;
  rest.limit = std::min<std::size_t>(filter.limit, 1000);
  std::vector<RaceSummary> all;
  while (rest.limit > 0) {
    FURLONG_TRY(RacePage some, page(rest));
    rest.limit -= std::min(rest.limit, some.races.size());
    std::ranges::move(some.races, std::back_inserter(all));
    if (some.next.empty()) break;
    rest.before = std::move(some.next);
  }
  return all;
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

Status Store::lines_of(std::span<const RecordId> ids,
                       const std::function<Result<bool>(std::string_view line)>& visit) {
  for (const RecordId& id : ids) {
    FURLONG_TRY(const auto found, race(record_id_text(id)));
    if (!found) continue;
    FURLONG_TRY(const bool more, visit(found->line));
    if (!more) return {};
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
  // What stands before an @ may be a password, whatever else is wrong with the address.
  const std::size_t at = url.rfind('@');
  const std::string shown =
      at == std::string_view::npos ? shown_url(url) : "***" + std::string(url.substr(at));
  return fail(Code::invalid, "'{}' is no store; the kinds are {}", one_line(shown), join(examples, " and "));
}

std::string_view url_password(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return {};
  const std::size_t colon = url.find(':', begin + 3), at = url.rfind('@');
  if (colon == std::string_view::npos || at == std::string_view::npos || at < colon) return {};
  return url.substr(colon + 1, at - colon - 1);
}

std::string shown_url(std::string_view url) {
  // scheme://user:password@host/…; also ?password=…, as libpq takes it.
  std::string shown(url);
  if (const std::string_view password = url_password(url); !password.empty())
    shown.replace(static_cast<std::size_t>(password.data() - url.data()), password.size(), "***");
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
