#pragma once
// Makes records of exchange files such as the hub takes.

#include <string>
#include <string_view>

#include "furlong/fleet/exchange/record_reader.h"

namespace furlong::fleet::internal {

/// Fills in what is missing from `defaults` and from what is there; `invalid` names what cannot be known and
/// the option that would say it. `text`: the record's own line of JSON, kept where nothing is added; empty:
/// there is none.
Result<ImportedRecord> complete(record::RaceRecord record, std::string_view text, int number,
                                const ImportDefaults& defaults);

}  // namespace furlong::fleet::internal
