#pragma once
// What simulated fleets are made of: cards, drivers, programs. Figures are of the order of the real ones.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/record/record.h"

namespace furlong::fleet::internal {

struct Model {
  std::string_view name;                 ///< unique
  std::vector<std::string_view> labels;  ///< what drivers call it; two models may share one
  record::Silicon silicon;
  std::string_view backend, language, compiler;
  std::span<const std::string_view> drivers;  ///< the oldest first
  double power_w;                             ///< default limit; 0: it reports no draw
  double lottery_mhs, gemv_rate;              ///< of base, 128 loads none wide, at the default limit
  double noise;                               ///< of its races, as a multiple of the recorded card's
};
const std::vector<Model>& models();

struct Program {
  std::string_view name, unit;
  bool has_epoch;
  std::vector<record::ProgramClass> classes;
  /// Names of its variants for a back end, base first; empty: it has no text for it.
  std::span<const std::string_view> (*variants)(std::string_view backend);
  /// How fast base is in a class, of its rate in the first one.
  double (*class_factor)(const record::ProgramClass&);
};
const std::vector<Program>& programs();

/// Power limits of machines, percent of the default.
inline constexpr int caps_pct[] = {100, 90, 80, 70, 60};
inline constexpr std::size_t cap_count = std::size(caps_pct);

}  // namespace furlong::fleet::internal
