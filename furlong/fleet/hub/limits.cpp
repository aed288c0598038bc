#include "furlong/fleet/hub/limits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "furlong/base/text.h"

namespace furlong::fleet {

double Buckets::refill(Bucket& bucket, std::int64_t now_ns) const {
  const double passed_s = static_cast<double>(now_ns - bucket.at_ns) * 1e-9;
  bucket.tokens =
      std::min(options_.burst, bucket.tokens + std::max(0.0, passed_s) * options_.per_minute / 60);
  bucket.at_ns = std::max(bucket.at_ns, now_ns);
  return bucket.tokens >= 1 ? 0 : (1 - bucket.tokens) * 60 / options_.per_minute;
}

double Buckets::take(std::string_view name, std::int64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    order_.splice(order_.begin(), order_, known->second);
  } else {
    order_.push_front({.name = std::string(name), .tokens = options_.burst, .at_ns = now_ns});
    by_name_.emplace(order_.front().name, order_.begin());
    if (order_.size() > options_.most_names) {
      by_name_.erase(order_.back().name);
      order_.pop_back();
    }
  }
  Bucket& bucket = order_.front();
  const double wait_s = refill(bucket, now_ns);
  if (wait_s == 0) bucket.tokens -= 1;
  return wait_s;
}

double Buckets::wait_s(std::string_view name, std::int64_t now_ns) const {
  const std::scoped_lock lock(mutex_);
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return 0;
  Bucket bucket = *known->second;
  return refill(bucket, now_ns);
}

void Buckets::give_back(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end())
    known->second->tokens = std::min(options_.burst, known->second->tokens + 1);
}

std::size_t Buckets::names() const {
  const std::scoped_lock lock(mutex_);
  return order_.size();
}

void RecentNames::put(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return;
  }
  order_.emplace_front(name);
  by_name_.emplace(order_.front(), order_.begin());
  if (order_.size() <= most_) return;
  by_name_.erase(order_.back());
  order_.pop_back();
}

void RecentNames::forget(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return;
  const auto at = known->second;
  by_name_.erase(known);
  order_.erase(at);
}

bool RecentNames::has(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  return by_name_.contains(name);
}

std::size_t RecentNames::names() const {
  const std::scoped_lock lock(mutex_);
  return order_.size();
}

namespace {

constexpr std::size_t longest_address = 64;

/// The first four groups of an IPv6 address, or empty when it is none.
std::string ipv6_network(std::string_view address) {
  address = address.substr(0, address.find('%'));
  const std::size_t gap = address.find("::");
  std::vector<std::string> groups;
  for (const std::string& group : split(address.substr(0, gap), ':'))
    if (!group.empty()) groups.push_back(group);
  if (gap != std::string_view::npos) {
    // A gap is as many groups of zero as are missing.
    std::vector<std::string> after;
    for (const std::string& group : split(address.substr(gap + 2), ':'))
      if (!group.empty()) after.push_back(group);
    while (groups.size() + after.size() < 8) groups.emplace_back("0");
    groups.insert(groups.end(), after.begin(), after.end());
  }
  if (groups.size() < 4) return "";
  groups.resize(4);
  return join(groups, ":") + "::/64";
}

}  // namespace

std::string network_of(std::string_view address) {
  address = address.substr(0, longest_address);
  if (address.starts_with("::ffff:") && address.find('.') != std::string_view::npos)
    return std::string(address.substr(7));  // an IPv4 address in IPv6's clothes
  if (address.find(':') != std::string_view::npos)
    if (std::string network = ipv6_network(address); !network.empty()) return network;
  return std::string(address);
}

}  // namespace furlong::fleet
