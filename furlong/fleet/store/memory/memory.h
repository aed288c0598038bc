#pragma once
// A store in this process' memory: the plain reference that the other kinds are compared with, and what
// tests of the fleet run on. Lost with the process.

#include <memory>

#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

class MemoryData;
/// What the stores opened on it share. Thread safe: calls take turns.
std::shared_ptr<MemoryData> make_memory_data();
std::unique_ptr<Store> open_memory_store(std::shared_ptr<MemoryData> data = make_memory_data());

}  // namespace furlong::fleet
