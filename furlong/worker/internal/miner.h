#pragma once
// Chunks of live work on the lottery: launches over consecutive nonces, finds verified on the host, and a
// shadow check of what the device computed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/device/device.h"
#include "furlong/worker/internal/serving.h"

namespace furlong::worker {

struct Find {
  std::uint64_t nonce = 0;
  std::uint64_t hash = 0;
};

/// One pair on one device, one thread at a time. make(), run() and sample() are called while the device is
/// held, and so goes the object; finds() and check() need it not.
class Miner {
 public:
  /// Output buffers of its own: a race may use those of `serving.buffers` meanwhile. `invalid`: the program
  /// is not the lottery; `exhausted`: no room.
  static Result<std::unique_ptr<Miner>> make(device::Device& device, Serving serving);

  /// The same pair by another variant, from the next chunk on.
  void serve(Serving serving);
  const Serving& serving() const { return serving_; }

  /// Runs `nonces` from `start`, in launches of at most launch_nonces(). Errors are the device's.
  Status run(std::uint64_t start, std::uint64_t nonces, std::uint64_t target);
  /// Most nonces of one launch.
  std::uint64_t launch_nonces() const { return launch_nonces_; }

  /// The finds of the last chunk, each verified by the reference. `mismatch`: the device says that a nonce is
  /// a find and the reference says of none in its place that it is.
  Result<std::vector<Find>> finds();
  /// Reads `count` hashes of the last chunk back, at random places.
  Status sample(int count, Random& random);
  /// Compares them, and whether their nonces were told as finds, with the reference. `mismatch` names the
  /// nonce and both hashes.
  Status check() const;

 private:
  Miner(device::Device& device, Serving serving);
  Result<device::Launch> launch(std::uint64_t start, std::uint32_t count, std::uint64_t target);
  Result<std::uint64_t> reference_hash(std::uint64_t nonce) const;

  device::Device& device_;
  Serving serving_;
  std::uint64_t launch_nonces_ = 0;
  std::unique_ptr<device::Buffer> hashes_, hits_;
  std::map<std::uint32_t, program::LaunchPlan> plans_;  ///< of the serving point, by count
  // Of the last chunk.
  std::uint64_t start_ = 0, nonces_ = 0, target_ = 0;
  Bytes hit_bits_;  ///< of all its launches together: nonces start + i, start + i + launch_nonces, …
  std::uint64_t last_count_ = 0;  ///< of its last launch, whose hashes are on the device
  std::vector<std::pair<std::uint64_t, std::uint64_t>> samples_;  ///< place in the last launch, hash
};

}  // namespace furlong::worker
