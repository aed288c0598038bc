#pragma once
// Who speaks for a subject: machines that share a card are one voice, and voices that the majority
// contradicts are set aside. docs/fleet-aggregation.md, "Voices". Internal to furlong/fleet/aggregate.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "furlong/fleet/aggregate/internal/machine.h"

namespace furlong::fleet::internal {

/// Of the store's numbers.
struct StoreNames {
  std::vector<std::string> words, machines;
};

/// Machines and variants by name, cells and slices by variant, machine and key: from here on nothing depends
/// on the order in which anything was stored.
void put_in_order(SubjectData& data, const StoreNames& names);

struct Voice {
  std::vector<std::uint32_t> members;              ///< machines, ascending
  bool aside = false;                              ///< nothing of it counts
  std::vector<std::pair<Stratum, double>> shares;  ///< of its races under each power cap; 1 together
};

struct Voices {
  std::vector<Voice> all;
  std::vector<std::uint32_t> of_machine;  ///< UINT32_MAX: none of its records counted
  std::vector<SetAside> set_aside;

  std::size_t counting() const;
};

/// Machines are grouped slot by slot, those reported by most machines first: each pair within a group shares
/// a slot. So a machine that claims everybody's slots can take one honest machine with it, and no more.
Voices find_voices(const SubjectData& data, const StoreNames& names);

/// Sets aside voices whose base rates more than half of the voices contradict: faster or slower than power
/// caps and the scatter of peers explain. Also those that more than half under their own cap contradict, if
/// their gains are off those of more than half of all voices, all alike.
void set_aside_bases(const SubjectData& data, const StoreNames& names, const std::string& unit,
                     Voices& voices);

/// Marks cells whose rate lies above the card's ceiling, the median over voices (one that reported none
/// counts as infinitely high); with base above it the whole voice is set aside.
void set_aside_above_ceiling(SubjectData& data, const StoreNames& names, const std::string& unit,
                             Voices& voices);

/// What machines themselves left out: fallbacks, races without base, without draw, floods.
void list_left_out(const SubjectData& data, const StoreNames& names, Voices& voices);

}  // namespace furlong::fleet::internal
