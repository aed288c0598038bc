#pragma once
// The machines of a simulated fleet: who they are, which cards they have, what is wrong with them.

#include <cstdint>
#include <string>
#include <vector>

#include "furlong/fleet/simulate/internal/world.h"
#include "furlong/fleet/simulate/simulate.h"

namespace furlong::fleet::internal {

struct Slot {
  std::uint64_t seed = 0;  ///< of the card: its deviations hang on it
  double level = 1;        ///< its rate, of what its model has
};

/// Beside machines()[i]: what races need and people do not.
struct Box {
  std::size_t model = 0;
  std::size_t cap = 0;  ///< number in caps_pct
  std::vector<Slot> slots;
  std::uint64_t key_seed = 0;
  std::uint64_t seed = 0;
};

struct Fleet {
  std::vector<SimulatedMachine> machines;
  std::vector<Box> boxes;
};

KeyPair key_of(const Box& box);
/// `invalid`: more roles than machines can bear.
Result<Fleet> make_fleet(const SimulateOptions& options, const World& world);
/// The driver at that time.
const std::string& driver_at(const SimulatedMachine& machine, std::int64_t at_us);

}  // namespace furlong::fleet::internal
