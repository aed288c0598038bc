#include "furlong/shard/internal/failed_units.h"

namespace furlong::shard::sections {

Out failed_units(std::span<const FailedUnit> failed) {
  Out out;
  out.number(static_cast<std::uint32_t>(failed.size()));
  for (const FailedUnit& unit : failed)
    out.number(unit.unit).number(static_cast<std::uint8_t>(unit.code == Code::exhausted)).text(unit.why);
  return out;
}

Status read_failed_units(In in, std::vector<FailedUnit>& failed,
                         const std::function<Status(const FailedUnit&, std::size_t byte)>& look) {
  FURLONG_TRY(const auto count, in.number<std::uint32_t>("the number of failed units"));
  for (std::uint32_t i = 0; i < count; ++i) {
    FailedUnit unit;
    FURLONG_TRY(unit.unit, in.number<std::uint32_t>("a failed unit"));
    const std::size_t at = in.byte();
    FURLONG_TRY(const auto code, in.number<std::uint8_t>("a failure's tag"));
    if (code > 1)
      return fail(Code::incompatible, "{}: byte {}: unknown tag {} of a failure: {}", in.name(), at, code,
                  in.mend());
    unit.code = code == 1 ? Code::exhausted : Code::mismatch;
    FURLONG_TRY(unit.why, in.text("why a unit failed"));
    if (look) FURLONG_CHECK(look(unit, at));
    failed.push_back(std::move(unit));
  }
  return in.done("the failed units");
}

}  // namespace furlong::shard::sections
