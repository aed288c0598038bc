#include "furlong/device/ptxas_log.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::device {
namespace {

// The number that stands before `words`, separated by one space.
std::optional<std::uint64_t> number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == std::string_view::npos || at == 0 || line[at - 1] != ' ') return std::nullopt;
  std::size_t start = at - 1;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
  const Result<std::int64_t> value = parse_integer(line.substr(start, at - 1 - start));
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

template <class T, class V>
void raise(std::optional<T>& to, std::optional<V> value) {
  if (value) to = std::max(to.value_or(T{}), static_cast<T>(*value));
}

}  // namespace

PtxasFacts parse_ptxas_log(std::string_view log) {
  PtxasFacts facts;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line = log.substr(at, end - at);
    at = end + 1;
    const std::optional<std::uint64_t> registers = number_before(line, "registers");
    if (registers && *registers < 100000) raise(facts.registers, registers);
    // A line of a kernel without shared memory does not name it.
    if (registers) raise(facts.shared_bytes, std::optional(number_before(line, "bytes smem").value_or(0)));
    const auto stores = number_before(line, "bytes spill stores");
    const auto loads = number_before(line, "bytes spill loads");
    if (stores && loads) raise(facts.spill_bytes, std::optional(*stores + *loads));
  }
  return facts;
}

}  // namespace furlong::device
