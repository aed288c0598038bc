#pragma once
// A profile: what each unit of a store costs and consults, in columns, so that a million units fit. It plans
// without executing anything (furlong/shard/profile_plan.h), feeds models (furlong/shard/model.h) and replays
// (furlong/shard/executor/replay). docs/formats/profile.md.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/shard/order.h"
#include "furlong/shard/plan.h"

namespace furlong::shard {

inline constexpr int kProfileVersion = 2, kOldestProfileVersion = 1;
/// The count of distinct work after memoisation by hashed keys (make_profile).
inline constexpr std::string_view kDistinct = "distinct_work";

/// One list of item numbers a unit, flat.
struct ItemLists {
  std::vector<std::uint64_t> first{0};  ///< where each unit's list begins in `items`, and the end
  std::vector<std::uint32_t> items;
  bool operator==(const ItemLists&) const = default;

  std::span<const std::uint32_t> of(UnitIndex unit) const {
    return std::span(items).subspan(first[unit], first[unit + 1] - first[unit]);
  }
  void add(std::span<const std::uint32_t> list) {
    items.insert(items.end(), list.begin(), list.end());
    first.push_back(items.size());
  }
};

enum class UnitState : std::uint8_t {
  unknown = 0,   ///< nobody looked: its amounts are 0 and mean nothing
  measured = 1,  ///< its amounts are known
  failed = 2     ///< rejected, or over the cap: it is in Profile::failed
};

/// Columns have one value a unit, in the store's plain order. Items are numbered unit by unit, in the order
/// in which a unit owns them.
struct Profile {
  Digest store;
  std::string executor;
  int executor_version = 0;
  /// Each unit was executed in a record of its own; else after those before it, and its amounts are what it
  /// added.
  bool isolated = true;
  std::vector<Key> keys;
  std::vector<std::string> names;
  std::vector<UnitState> states;
  std::vector<double> work;  ///< W
  std::vector<std::uint64_t> record_bytes;
  std::vector<std::string> features;          ///< names, ascending
  std::vector<std::vector<double>> counters;  ///< a column each; 0 where a unit counted none
  std::optional<std::vector<double>>
      seconds;                               ///< wall time; absent unless asked for, since no two runs agree
  std::vector<std::uint32_t> first_item{0};  ///< of each unit, and the end
  std::vector<std::uint64_t> item_bytes;     ///< one value an item
  /// What units refer to: items of others, ascending. Absent is not empty: absent says that nobody recorded
  /// it.
  std::optional<ItemLists> references;
  /// What they really consulted, their own and others', ascending; a part of what they own and refer to.
  /// Empty for a unit that was not measured.
  std::optional<ItemLists> touched;
  std::vector<FailedUnit> failed;  ///< by unit
  bool operator==(const Profile&) const = default;

  UnitIndex units() const { return static_cast<UnitIndex>(keys.size()); }
  std::uint32_t items() const { return static_cast<std::uint32_t>(item_bytes.size()); }
  std::uint64_t own_bytes(UnitIndex unit) const;
  /// The unit that owns each item.
  std::vector<UnitIndex> owners() const;
  /// Index into counters; `invalid` with the nearest names.
  Result<std::size_t> feature(std::string_view name) const;
};

/// `invalid` with the first contradiction (a column's length, an item that is not there, a list that does not
/// ascend, a touched item that is neither owned nor referred to), with `name` before it.
Status check_profile(const Profile& profile, const std::string& name);

/// Who refers to what, for orders and cross bytes; where no references were recorded, who touched what.
/// `invalid` where neither was.
Result<Sharing> profile_sharing(const Profile& profile);

/// Walks what a unit needs in all: its own items, those that it refers to, and what the owners of those refer
/// to in turn. Flat, reused from walk to walk. One thread at a time; the profile must live as long, and have
/// references.
class Closure {
 public:
  explicit Closure(const Profile& profile);
  /// Items of the closure of `unit`, each once, in no order; valid until the next call. `seen(item)` true:
  /// the item is known already, and so is what lies behind it: it is left out.
  template <class Seen>
  std::span<const std::uint32_t> items(UnitIndex unit, const Seen& seen) {
    begin();
    for (std::uint32_t item = profile_.first_item[unit]; item < profile_.first_item[unit + 1]; ++item) {
      item_mark_[item] = walk_;  // a cycle leads back to it
      if (!seen(item)) found_.push_back(item);
    }
    expand(unit);
    for (std::size_t next = 0; next < reached_.size(); ++next) {
      const std::uint32_t item = reached_[next];
      if (seen(item)) continue;
      found_.push_back(item);
      expand(owners_[item]);
    }
    return found_;
  }
  std::span<const std::uint32_t> items(UnitIndex unit) {
    return items(unit, [](std::uint32_t) { return false; });
  }
  const std::vector<UnitIndex>& owners() const { return owners_; }

 private:
  void begin();
  void expand(UnitIndex unit);

  const Profile& profile_;
  std::vector<UnitIndex> owners_;
  std::vector<std::uint32_t> unit_mark_, item_mark_;  // the walk that came by last
  std::uint32_t walk_ = 0;
  std::vector<std::uint32_t> reached_, found_;
};

/// Deterministic; version kProfileVersion. The profile must pass check_profile().
std::string print_profile(const Profile& profile);
/// `name` is the file's. Reads kOldestProfileVersion too, which has no touch graph. `invalid`: no profile, or
/// one that contradicts itself; `corrupt`: torn or flipped, with the byte; `incompatible`: another version
/// (found, expected), or an unknown tag.
Result<Profile> parse_profile(std::string_view bytes, const std::string& name);
Result<Profile> read_profile(Files& files, const std::filesystem::path& file);
Status write_profile(Files& files, const std::filesystem::path& file, const Profile& profile);

}  // namespace furlong::shard
