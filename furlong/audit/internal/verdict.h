#pragma once
// From evidence to verdicts. Internal to furlong/audit.

#include "furlong/audit/audit.h"

namespace furlong::audit::internal {

/// Fills verdict, why, best, worst and what is missing of a value whose evidence is in place.
void judge(const lattice::Knob& knob, const Options& options, ValueReport& value);
/// The knob's verdict and summary from those of its values.
void sum_up(const lattice::Knob& knob, KnobReport& report);
/// One report a claim about this value.
std::vector<ClaimReport> judge_claims(const lattice::Knob& knob, const Options& options,
                                      const ValueReport& value);
/// What --strict refuses, one sentence each.
std::vector<std::string> contradictions(const lattice::Knob& knob, const KnobReport& report);

/// "+2.10% (+1.80% to +2.40%)"; log ratios in.
std::string gain_text(double estimate, double low, double high);
/// "+2.10% (…) with loads=128,wide=0 on NVIDIA_H200, driver 580.95.05, beside w4", "more registers (40 to
/// 48) …", "u8 fails (compile) …".
std::string place_text(const ValueReport& value, const Place& place);

}  // namespace furlong::audit::internal
