#pragma once
// From the machines' medians of one subject to what the card's voices say of every variant. Internal to
// furlong/fleet/aggregate.

#include <string>
#include <vector>

#include "furlong/fleet/aggregate/internal/voices.h"

namespace furlong::fleet::internal {

/// `variants` best first by what `options` ranks by, no choice made yet. Reorders and marks `data`.
RowEvidence row_of(const Subject& subject, SubjectData& data, const StoreNames& names,
                   const AggregateOptions& options);

/// What the choice compares: gain or rate, as `options` ranks.
double standing_of(const VariantEvidence& variant, Rank rank);

/// What `by` wants, from what the subject's gains are.
Quantity quantity_of(const Subject& subject, By by);

}  // namespace furlong::fleet::internal
