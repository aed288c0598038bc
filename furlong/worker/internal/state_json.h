#pragma once
// The worker's state as one line of JSON (the event `status`).

#include <optional>
#include <string>

#include "furlong/device/device.h"
#include "furlong/record/worker_protocol.h"

namespace furlong::worker {

struct StateFields {
  const device::Facts* facts = nullptr;
  std::optional<record::Pair> pair;  ///< in service
  std::string variant;
  std::optional<std::string> job;
  std::uint64_t next = 0;
  std::optional<record::Pair> preparing;
  std::string ready;  ///< the variant that could serve it now; empty: none yet
  bool preparing_done = false;
  std::uint64_t hashes = 0, prepares = 0;
  std::size_t unwritten_records = 0;
};
std::string state_json(const StateFields& fields);

}  // namespace furlong::worker
