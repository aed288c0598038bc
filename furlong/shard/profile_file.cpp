#include "furlong/shard/internal/failed_units.h"
#include "furlong/shard/internal/sections.h"
#include "furlong/shard/profile.h"

namespace furlong::shard {
namespace {

using sections::In;
using sections::Out;

constexpr std::string_view kMagic = "furlong profile\n";
constexpr std::string_view kHead = "HEAD", kUnits = "UNIT", kItems = "ITEM", kCosts = "COST",
                           kFailed = "FAIL", kSeconds = "SECS", kReferences = "REFS", kTouched = "TUCH",
                           kSum = "SUM.";
constexpr std::string_view kMend = "record it anew with furlong shard profile";

// Presence of the optional sections.
constexpr std::uint8_t kHasSeconds = 1, kHasReferences = 2, kHasTouched = 4;
constexpr std::uint8_t known_flags(std::uint32_t version) {
  return version == 1 ? kHasSeconds | kHasReferences : kHasSeconds | kHasReferences | kHasTouched;
}

// The counts that the lengths of all columns follow from.
struct Head {
  std::uint8_t flags = 0;
  std::uint32_t units = 0, items = 0;
};

Out head(const Profile& p) {
  Out out;
  out.digest(p.store).text(p.executor).number(std::int32_t{p.executor_version});
  out.number(static_cast<std::uint8_t>(p.isolated));
  out.number(static_cast<std::uint8_t>((p.seconds ? kHasSeconds : 0) | (p.references ? kHasReferences : 0) |
                                       (p.touched ? kHasTouched : 0)));
  return out.number(p.units()).number(p.items());
}

Result<Head> read_head(In in, std::uint32_t version, Profile& p) {
  Head head;
  FURLONG_TRY(p.store, in.digest("the store's digest"));
  FURLONG_TRY(p.executor, in.text("the executor"));
  FURLONG_TRY(const auto executor_version, in.number<std::int32_t>("the executor's version"));
  p.executor_version = executor_version;
  std::size_t at = in.byte();
  FURLONG_TRY(const auto isolated, in.number<std::uint8_t>("whether it is isolated"));
  if (isolated > 1) return fail(Code::invalid, "{}: byte {}: a flag of {}", in.name(), at, isolated);
  p.isolated = isolated == 1;
  at = in.byte();
  FURLONG_TRY(head.flags, in.number<std::uint8_t>("which sections there are"));
  if ((head.flags & ~known_flags(version)) != 0)
    return fail(Code::incompatible, "{}: byte {}: unknown tag {:#x} of optional sections: {}", in.name(), at,
                head.flags, kMend);
  FURLONG_TRY(head.units, in.number<std::uint32_t>("the number of units"));
  FURLONG_TRY(head.items, in.number<std::uint32_t>("the number of items"));
  FURLONG_CHECK(in.done("the head"));
  return head;
}

Out units(const Profile& p) {
  Out out;
  for (const Key& key : p.keys) out.digest(key);
  for (const std::string& name : p.names) out.text(name);
  return out.numbers(p.states);
}

Status read_units(In in, const Head& head, Profile& p) {
  FURLONG_TRY(p.keys, in.numbers<Key>(head.units, "the units' keys"));
  for (std::uint32_t i = 0; i < head.units; ++i) {  // the keys were there, so the number is to be trusted
    FURLONG_TRY(std::string name, in.text("a unit's name"));
    p.names.push_back(std::move(name));
  }
  const std::size_t at = in.byte();
  FURLONG_TRY(p.states, in.numbers<UnitState>(head.units, "the units' states"));
  for (std::size_t i = 0; i < p.states.size(); ++i)
    if (p.states[i] > UnitState::failed)
      return fail(Code::incompatible, "{}: byte {}: unknown tag {} of a unit's state: {}", in.name(), at + i,
                  static_cast<int>(p.states[i]), kMend);
  return in.done("the units");
}

Out items(const Profile& p) {
  Out out;
  return out.numbers(p.first_item).numbers(p.item_bytes);
}

Status read_items(In in, const Head& head, Profile& p) {
  FURLONG_TRY(p.first_item, in.numbers<std::uint32_t>(std::uint64_t{head.units} + 1, "the units' items"));
  FURLONG_TRY(p.item_bytes, in.numbers<std::uint64_t>(head.items, "the items' bytes"));
  return in.done("the items");
}

Out costs(const Profile& p) {
  Out out;
  out.numbers(p.work).numbers(p.record_bytes).number(static_cast<std::uint32_t>(p.features.size()));
  for (std::size_t f = 0; f < p.features.size(); ++f) out.text(p.features[f]).numbers(p.counters[f]);
  return out;
}

Status read_costs(In in, const Head& head, Profile& p) {
  FURLONG_TRY(p.work, in.amounts(head.units, "the work"));
  FURLONG_TRY(p.record_bytes, in.numbers<std::uint64_t>(head.units, "the record bytes"));
  FURLONG_TRY(const auto count, in.number<std::uint32_t>("the number of features"));
  for (std::uint32_t f = 0; f < count; ++f) {
    FURLONG_TRY(std::string name, in.text("a feature's name"));
    FURLONG_TRY(auto column, in.amounts(head.units, "a feature"));
    p.features.push_back(std::move(name));
    p.counters.push_back(std::move(column));
  }
  return in.done("the costs");
}

Out lists(const ItemLists& value) {
  Out out;
  return out.numbers(value.first).numbers(value.items);
}

Result<ItemLists> read_lists(In in, const Head& head, std::string_view what) {
  ItemLists value;
  FURLONG_TRY(value.first, in.numbers<std::uint64_t>(std::uint64_t{head.units} + 1, what));
  FURLONG_TRY(value.items, in.numbers<std::uint32_t>(value.first.back(), what));
  FURLONG_CHECK(in.done(what));
  return value;
}

}  // namespace

std::string print_profile(const Profile& profile) {
  Out out;
  out.raw(kMagic).number(std::uint32_t{kProfileVersion});
  out.section(kHead, head(profile)).section(kUnits, units(profile)).section(kItems, items(profile));
  out.section(kCosts, costs(profile)).section(kFailed, sections::failed_units(profile.failed));
  if (profile.seconds) out.section(kSeconds, Out().numbers(*profile.seconds));
  if (profile.references) out.section(kReferences, lists(*profile.references));
  if (profile.touched) out.section(kTouched, lists(*profile.touched));
  Out sum;
  sum.digest(blake2b_256(out.bytes()));
  out.section(kSum, sum);
  return out.take();
}

Result<Profile> parse_profile(std::string_view bytes, const std::string& name) {
  In in(bytes, name, kMend);
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size()) || bytes.empty())
    return fail(Code::invalid, "{}: not a profile: it does not begin as one", name);
  FURLONG_CHECK(in.raw(kMagic.size(), "the magic"));
  FURLONG_TRY(const auto version, in.number<std::uint32_t>("the version"));
  if (version < kOldestProfileVersion || version > kProfileVersion)
    return fail(Code::incompatible, "{}: found a profile of version {}, expected {} to {}: {}{}", name,
                version, kOldestProfileVersion, kProfileVersion,
                version > kProfileVersion ? "take a newer Furlong, or " : "", kMend);
  Profile profile;
  FURLONG_TRY(const In head_in, in.section(kHead));
  FURLONG_TRY(const Head head, read_head(head_in, version, profile));
  FURLONG_TRY(const In units_in, in.section(kUnits));
  FURLONG_CHECK(read_units(units_in, head, profile));
  FURLONG_TRY(const In items_in, in.section(kItems));
  FURLONG_CHECK(read_items(items_in, head, profile));
  FURLONG_TRY(const In costs_in, in.section(kCosts));
  FURLONG_CHECK(read_costs(costs_in, head, profile));
  FURLONG_TRY(const In failed_in, in.section(kFailed));
  FURLONG_CHECK(sections::read_failed_units(failed_in, profile.failed));
  if ((head.flags & kHasSeconds) != 0) {
    FURLONG_TRY(In seconds_in, in.section(kSeconds));
    FURLONG_TRY(profile.seconds, seconds_in.amounts(head.units, "the seconds"));
    FURLONG_CHECK(seconds_in.done("the seconds"));
  }
  if ((head.flags & kHasReferences) != 0) {
    FURLONG_TRY(const In lists_in, in.section(kReferences));
    FURLONG_TRY(profile.references, read_lists(lists_in, head, "the references"));
  }
  if ((head.flags & kHasTouched) != 0) {
    FURLONG_TRY(const In lists_in, in.section(kTouched));
    FURLONG_TRY(profile.touched, read_lists(lists_in, head, "the touched items"));
  }
  const std::size_t summed = in.byte();
  FURLONG_TRY(In sum_in, in.section(kSum));
  FURLONG_TRY(const Digest sum, sum_in.digest("the check sum"));
  FURLONG_CHECK(sum_in.done("the check sum"));
  FURLONG_CHECK(in.done("the file"));
  if (sum != blake2b_256(bytes.substr(0, summed)))
    return fail(Code::corrupt, "{}: damaged: the check sum over its first {} bytes does not fit", name,
                summed);
  FURLONG_CHECK(check_profile(profile, name));
  return profile;
}

Result<Profile> read_profile(Files& files, const std::filesystem::path& file) {
  FURLONG_TRY(const std::string bytes, files.read(file));
  return parse_profile(bytes, file.string());
}

Status write_profile(Files& files, const std::filesystem::path& file, const Profile& profile) {
  return files.write_atomic(file, print_profile(profile));
}

}  // namespace furlong::shard
