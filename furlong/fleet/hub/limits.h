#pragma once
// Rate limits by name (a machine, an address) in bounded memory.

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace furlong::fleet {

/// A token bucket a name: so many at once, refilled at so many a minute. At most `most_names` are
/// remembered; beyond it the one that was used longest ago is forgotten, which gives it a full bucket again.
/// Thread safe.
class Buckets {
 public:
  struct Options {
    double per_minute = 60;
    double burst = 60;
    std::size_t most_names = 10'000;
  };
  explicit Buckets(Options options) : options_(options) {}

  /// Takes one. 0: it was there; else nothing is taken, and so many seconds pass before there is one.
  double take(std::string_view name, std::int64_t now_ns);
  /// As take(), but takes nothing and remembers nothing.
  double wait_s(std::string_view name, std::int64_t now_ns) const;
  /// Puts one back that should not have counted.
  void give_back(std::string_view name);
  std::size_t names() const;

 private:
  struct Bucket {
    std::string name;
    double tokens = 0;
    std::int64_t at_ns = 0;
  };
  /// Seconds until the bucket has one, its tokens brought up to now.
  double refill(Bucket& bucket, std::int64_t now_ns) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::list<Bucket> order_;  ///< the last used first
  std::unordered_map<std::string_view, std::list<Bucket>::iterator> by_name_;
};

/// The last `most` names that were put in. Thread safe.
class RecentNames {
 public:
  explicit RecentNames(std::size_t most) : most_(most) {}
  void put(std::string_view name);
  void forget(std::string_view name);
  bool has(std::string_view name) const;
  std::size_t names() const;

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::list<std::string> order_;
  std::unordered_map<std::string_view, std::list<std::string>::iterator> by_name_;
};

/// What limits count as one client: an IPv4 address, or an IPv6 network of 64 bits, since one household or
/// one server has all of it. Other texts stay as they are, cut.
std::string network_of(std::string_view address);

}  // namespace furlong::fleet
