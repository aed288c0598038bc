// The parts of trade-off sentences that a machine can check.
#include "furlong/base/text.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice {

std::string_view claim_outcome_name(ClaimOutcome outcome) {
  switch (outcome) {
    case ClaimOutcome::wins:
      return "wins";
    case ClaimOutcome::loses:
      return "loses";
    case ClaimOutcome::ties:
      break;
  }
  return "ties";
}

std::span<const std::string> claim_facts() {
  static const std::vector<std::string> names = {"device.arch",       "device.backend",
                                                 "device.memory_mib", "device.multiprocessors",
                                                 "device.sm",         "device.vendor"};
  return names;
}

Result<Expression> claim_condition(const Claim& claim) {
  if (trim(claim.where).empty()) return Expression::constant(Value(true));
  return Expression::parse(claim.where);
}

}  // namespace furlong::lattice
