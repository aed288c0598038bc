#pragma once
// What races of a store run on: devices that stay open from one unit to the next, programs read from the
// store's packs, and each unit made ready to race.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/campaign/campaign.h"
#include "furlong/campaign/internal/items.h"
#include "furlong/program/instance.h"
#include "furlong/race/race.h"
#include "furlong/shard/executor.h"

namespace furlong::campaign {

/// A race unit, ready. Valid as long as its stage, and until the next unit is prepared.
struct Ready {
  RaceItem item;
  std::shared_ptr<const program::Program> program;
  std::optional<program::Instance> instance;  ///< set
  std::vector<lattice::Point> points;         ///< of the rules; base first
  race::Options options;
  race::Context context;
  std::string dataset;  ///< hex of its key; empty: none
};

/// One thread at a time.
class Stage {
 public:
  /// `memory_cap_bytes`: of what each device allocates for a race; 0: none.
  Stage(std::unique_ptr<Devices> devices, std::uint64_t memory_cap_bytes, std::stop_token stop);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Reads the unit's items and opens what they name; null for a unit of a shared program or dataset, whose
  /// item is verified. `unavailable` names the device that is not here, `mismatch` what makes the unit no
  /// race (its program has no text for the device, a point does not fit), `corrupt` a damaged pack.
  Result<std::unique_ptr<Ready>> prepare(const shard::Unit& unit, shard::ItemSource& items);
  /// The program of a pack item. Its files go to the cache folder, under their content hash, where compilers
  /// find headers; what is there already is verified.
  Result<std::shared_ptr<const program::Program>> program(const PackItem& pack);
  /// An open device that the name fits.
  Result<device::Device*> device(const std::string& name);
  Clock& clock(const device::Facts& facts) { return devices_->clock(facts); }

 private:
  Result<std::string> address_of(const std::string& name);
  Result<device::Device*> open(const std::string& address);
  Status bind(Ready& ready);

  const std::unique_ptr<Devices> devices_;
  const std::uint64_t memory_cap_bytes_;
  const std::stop_token stop_;
  std::map<std::string, std::shared_ptr<const program::Program>> programs_;  // by content
  std::map<std::string, std::string> addresses_;                             // by name
  std::map<std::string, std::unique_ptr<device::Device>> open_;              // by address
};

/// race::Options as the rules say; no trial.
race::Options race_options(const RaceRules& rules);

}  // namespace furlong::campaign
