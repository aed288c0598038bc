#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "furlong/fleet/exchange/record_reader.h"

namespace furlong::fleet::internal {

/// Names columns, `variant` among them.
bool is_csv_head(std::string_view line);
std::unique_ptr<RecordReader> make_csv_reader(std::string name, const ImportDefaults& defaults,
                                              RecordReader::Sink sink);
std::unique_ptr<RecordReader> make_log_reader(std::string name, const ImportDefaults& defaults,
                                              RecordReader::Sink sink);

}  // namespace furlong::fleet::internal
