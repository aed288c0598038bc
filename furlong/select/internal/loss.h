#pragma once
// What a choice is expected to lose, from the gains that a tuning holds (docs/formats/tuning.md).

#include <optional>
#include <string_view>

#include "furlong/select/internal/nearest.h"

namespace furlong::selecting {

/// Gain over base that the measurement states for the variant, ratio less 1; nullopt: none stated.
std::optional<double> gain_at(const Entry& entry, std::string_view variant);
/// What the variant lost there to the winner, 0 to 1; nullopt: not timed there.
std::optional<double> loss_at(const Entry& entry, std::string_view variant);

/// For the question: the loss there, on the way to the question's size, and on other cards where the card is
/// another one.
std::optional<double> expected_loss(const record::Tuning& tuning, const Question& question,
                                    const Entry& entry, std::string_view variant);

}  // namespace furlong::selecting
