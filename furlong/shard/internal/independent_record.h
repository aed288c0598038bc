#pragma once
// Records of executors whose units cost the same whoever ran before them: each unit is executed once, in a
// record of its own, and a journal keeps what it cost.

#include <memory>
#include <string>

#include "furlong/shard/executor.h"
#include "furlong/shard/journal.h"
#include "furlong/shard/plan.h"

namespace furlong::shard {

/// executor.begin(), or for an independent executor a record that takes units' costs from the journal and
/// adds to it those that it executes. The executor and the journal must live as long.
Result<std::unique_ptr<Record>> begin_record(const Executor& executor, const std::string& settings,
                                             std::uint64_t cap_bytes, std::stop_token stop, Journal& journal);

/// Of the findings that hold under one sizing alone: empty for executors of whose units nothing else is
/// known, whose journal is of one sizing anyway; else the sizing's name, since what units cost serves every
/// sizing.
std::string journal_scope(const Executor& executor, const Sizing& sizing);
/// "segment", or "segment SCOPE".
std::string scoped_kind(std::string_view kind, const std::string& scope);

}  // namespace furlong::shard
