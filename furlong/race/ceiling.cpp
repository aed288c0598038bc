#include "furlong/race/ceiling.h"

#include <array>
#include <cmath>

#include "furlong/base/text.h"

namespace furlong::race {
namespace {

using device::CeilingKind;

/// Seconds that a launch takes at a limit.
struct Limit {
  double seconds = 0;
  std::string of;
};

void keep_longest(std::optional<Limit>& longest, Limit limit) {
  if (!longest || limit.seconds > longest->seconds) longest = std::move(limit);
}

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(std::llround(bytes)); }

/// Nullopt also where one of the widths was not measured: the others alone would promise too much.
std::optional<Limit> random_limit(const program::Instance::Work& work, const device::Ceilings& ceilings) {
  constexpr std::array kinds{CeilingKind::random4, CeilingKind::random16, CeilingKind::random128};
  Limit limit;
  std::vector<std::string> widths;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!(work.loads[i] > 0)) continue;
    const auto rate = ceilings.rate(kinds[i], whole(work.dataset));
    if (!rate) return std::nullopt;
    limit.seconds += work.loads[i] / *rate;
    widths.emplace_back(device::ceiling_words(kinds[i]));
  }
  if (widths.empty()) return std::nullopt;
  limit.of = join(widths, " and ");
  return limit;
}

std::optional<Limit> stream_limit(const program::Instance::Work& work, const device::Ceilings& ceilings) {
  if (!work.bytes) return std::nullopt;
  for (const double loads : work.loads)
    if (loads > 0) return std::nullopt;
  const auto rate = ceilings.rate(CeilingKind::stream_read, whole(*work.bytes));
  if (!rate) return std::nullopt;
  return Limit{*work.bytes / *rate, std::string(device::ceiling_words(CeilingKind::stream_read))};
}

std::optional<Limit> arithmetic_limit(const std::optional<double>& operations, CeilingKind kind,
                                      const device::Ceilings& ceilings) {
  const auto rate = ceilings.rate(kind);
  if (!operations || !rate) return std::nullopt;
  return Limit{*operations / *rate, std::string(device::ceiling_words(kind))};
}

}  // namespace

std::optional<Ceiling> ceiling_of(const program::Instance::Work& work, const device::Ceilings& ceilings) {
  std::optional<Limit> longest;
  for (auto& limit : {random_limit(work, ceilings), stream_limit(work, ceilings),
                      arithmetic_limit(work.flops, CeilingKind::floating, ceilings),
                      arithmetic_limit(work.int_ops, CeilingKind::integer, ceilings)})
    if (limit) keep_longest(longest, *limit);
  if (!longest || !(longest->seconds > 0)) return std::nullopt;
  return Ceiling{work.amount / longest->seconds, longest->of};
}

void add_shares(const program::Instance& instance, const device::Ceilings& ceilings, Outcome& outcome) {
  for (VariantOutcome& variant : outcome.variants) {
    if (!variant.rate) continue;
    const auto work = instance.work(variant.point);
    if (!work) continue;
    const auto ceiling = ceiling_of(*work, ceilings);
    if (!ceiling) continue;
    variant.ceiling_rate = ceiling->rate;
    variant.share_of_ceiling = *variant.rate / ceiling->rate;
    variant.ceiling = ceiling->of;
  }
}

}  // namespace furlong::race
