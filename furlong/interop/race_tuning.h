#pragma once
// A tuning file from races: what furlong::select() reads at run time (docs/formats/tuning.md).

#include <string>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"
#include "furlong/record/tuning.h"

namespace furlong::interop {

/// The tuning of races by any number of cards, programs and sizes; each document is what `furlong race
/// --json` wrote (one race or several sizes) with its name for messages. A row a card and program, with one
/// size a problem: the newest race of it. The row's own variant is the one that wins most sizes.
/// Deterministic, whatever the order of the documents. `invalid` names what is missing or wrong, a race that
/// timed nothing, a card that was raced by two back ends, and no races at all; `incompatible` another schema.
Result<record::Tuning> tuning_from_races(const std::vector<std::pair<std::string, Json>>& documents);

}  // namespace furlong::interop
