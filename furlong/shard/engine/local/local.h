#pragma once
// The engine "local": jobs on this machine, as many at once as their predicted memory admits.

#include <functional>
#include <memory>
#include <stop_token>

#include "furlong/shard/engine.h"

namespace furlong::shard::local {

/// Carries one task out; called from several threads at once. `seconds` of the result is set by the engine.
/// When the token stops, it ends what it began and returns `timeout`.
using Job = std::function<TaskEnd(const EngineTask&, std::stop_token)>;

/// Tasks begin in their order; where the next one does not fit into what memory is left, one after it that
/// does is begun instead. One whose prediction is over all of the memory is `exhausted`, unbegun.
std::unique_ptr<Engine> make_engine(Job job);

}  // namespace furlong::shard::local
