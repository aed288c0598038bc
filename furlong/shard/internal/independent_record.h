#pragma once
// Records of executors whose units cost the same whoever ran before them: each unit is executed once, in a
// record of its own, and a journal keeps what it cost.

#include <memory>
#include <string>

#include "furlong/shard/executor.h"
#include "furlong/shard/journal.h"

namespace furlong::shard {

/// executor.begin(), or for an independent executor a record that takes units' costs from the journal and
/// adds to it those that it executes. The executor and the journal must live as long.
Result<std::unique_ptr<Record>> begin_record(const Executor& executor, const std::string& settings,
                                             std::uint64_t cap_bytes, std::stop_token stop, Journal& journal);

}  // namespace furlong::shard
