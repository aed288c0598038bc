#pragma once
// What `furlong fleet tuning`, `explain` and `regressions` share: the store, and the options of the
// aggregation.

#include <vector>

#include "apps/furlong/command.h"
#include "furlong/fleet/aggregate/aggregate.h"

namespace furlong::app {

/// The store that --store names, as often as it is asked for; it must be there. `invalid` without --store.
Result<fleet::OpenStore> evidence_store(const Arguments& arguments);
Result<fleet::AggregateOptions> aggregate_options(const Arguments& arguments);
/// "2026-03-01T12:00:00Z"; nullopt when it was not given.
Result<std::optional<std::int64_t>> until_option(const Arguments& arguments);

OptionSpec evidence_store_option();
OptionSpec until_option_spec();
/// Those of aggregate_options(), --store first, --json last.
std::vector<OptionSpec> aggregate_option_specs();

}  // namespace furlong::app
