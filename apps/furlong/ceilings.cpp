#include "apps/furlong/ceilings.h"

#include <unistd.h>

#include <array>

#include "apps/furlong/command.h"
#include "furlong/base/os/paths.h"

namespace furlong::app {
namespace {

std::filesystem::path folder() { return cache_folder() / "ceilings"; }

}  // namespace

std::optional<device::Ceilings> kept_ceilings(const device::Facts& facts) {
  if (facts.virtual_time) return std::nullopt;
  return device::cached_ceilings(folder(), facts);
}

Result<device::Ceilings> measure_and_keep(device::Device& device, std::stop_token stop, bool quiet) {
  const device::Facts& facts = device.facts();
  if (facts.virtual_time)
    return fail(Code::invalid, "{} is simulated: it has no ceilings to measure", facts.address());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  device::CeilingOptions options;
  options.stop = stop;
  if (!quiet)
    options.progress = [&](const device::CeilingProgress& now) {
      const std::string line =
          fmt::format("measuring {}'s ceilings {}/{}: {}", facts.address(), now.done, now.total, now.doing);
      if (terminal) print_err("\r\033[K" + line);
      if (!terminal && now.done == 0) print_err(line + "\n");
    };
  auto measured = device::measure_ceilings(device, options);
  if (!quiet && terminal) print_err("\r\033[K");
  if (!measured) return measured;
  const Status kept = device::cache_ceilings(folder(), facts, *measured);
  if (!kept)
    print_err(
        fmt::format("furlong: the ceilings are not kept: {}; set FURLONG_CACHE_DIR to a folder that can "
                    "be written to\n",
                    kept.error().text()));
  return measured;
}

std::string ceiling_rate_text(device::CeilingKind kind, double rate) {
  constexpr std::array<const char*, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t step = 0;
  for (; rate >= 1000 && step + 1 < prefixes.size(); ++step) rate /= 1000;
  const int decimals = rate < 10 ? 2 : rate < 100 ? 1 : 0;
  const std::string_view unit = device::ceiling_unit(kind);
  if (unit == "byte") return fmt::format("{:.{}f} {}B/s", rate, decimals, prefixes[step]);
  return fmt::format("{:.{}f} {}{}{}s/s", rate, decimals, prefixes[step], step > 0 ? " " : "", unit);
}

}  // namespace furlong::app
