#pragma once
// What is true: base's rate, every variant's gain, draw and fate, by card, program, class and power cap.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "furlong/fleet/simulate/internal/models.h"
#include "furlong/fleet/simulate/simulate.h"

namespace furlong::fleet::internal {

struct TrueVariant {
  std::string name;
  Exit fate = Exit::stayed;  ///< stayed, compile, gate, launch, or duplicate (of base)
  double gain_pct[cap_count] = {};
  double draw = 1;  ///< of base's power
  int registers = 0;
  double compile_ms = 0;
  bool raced() const { return fate == Exit::stayed || fate == Exit::duplicate; }
};

struct TrueSubject {
  Subject subject;
  std::size_t model = 0, program = 0, program_class = 0;
  std::vector<TrueVariant> variants;  ///< base first
  double base_rate[cap_count] = {};
  double base_draw_w = 0;  ///< without a limit; 0: it reports none
  double ceiling = 0;
  double power_w(const TrueVariant& variant, std::size_t cap) const;
};

/// A regression with its names looked up.
struct Regressed {
  std::size_t model, program;
  std::string variant;
  std::string driver;
  std::int64_t from_us;
  double factor;  ///< of the rate
  bool holds(const TrueSubject& subject, std::string_view driver_now, std::int64_t at_us) const;
};

struct World {
  std::vector<std::size_t> models;  ///< that the fleet is made of: numbers in models()
  std::vector<std::size_t> programs;
  std::vector<TrueSubject> subjects;
  std::vector<Regressed> regressions;
  std::vector<PlantedRegression> planted;
  /// Number of a subject by model, program and class; the model has the program.
  std::size_t subject(std::size_t model, std::size_t program, std::size_t program_class) const;
  bool has(std::size_t model, std::size_t program) const;
  /// Gain over base in percent, with the regressions of that time.
  double gain_pct(const TrueSubject& subject, const TrueVariant& variant, std::size_t cap,
                  std::string_view driver, std::int64_t at_us) const;
  double base_factor(const TrueSubject& subject, std::string_view driver, std::int64_t at_us) const;

 private:
  friend Result<World> make_world(const SimulateOptions& options);
  std::vector<std::size_t> first_;  ///< by model and program; npos: none
};
Result<World> make_world(const SimulateOptions& options);

TruthRow truth_row(const World& world, const TrueSubject& subject, const double (&weights)[cap_count],
                   std::string_view driver, std::int64_t at_us);

}  // namespace furlong::fleet::internal
