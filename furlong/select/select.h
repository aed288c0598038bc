#pragma once
// Which variant to run on a device for a problem, from a tuning file (docs/formats/tuning.md): the nearest
// card, of that the nearest problem size, and what the choice is expected to lose. Nothing is compiled, timed
// or opened. Pure functions over immutable values: safe from any thread, several at once.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/record/tuning.h"

namespace furlong {

/// Whose measurement a choice stands on.
enum class CardFit {
  own,                ///< this silicon (record::find_tuning's rules)
  same_architecture,  ///< the nearest card of this vendor and architecture
  same_vendor,        ///< the nearest card of this vendor
  none,               ///< nobody's: base
};

/// For which size it was measured.
enum class SizeFit {
  exact,    ///< this problem
  every,    ///< the row names no size, or no class: it holds for every one
  nearest,  ///< the nearest measured size or class
  none,     ///< nothing was measured: base
};

struct SelectOptions {
  std::string language;  ///< of the kernel text; empty: the first one of the device that the program has
  /// Knobs whose lossy or restricted values may be chosen. A tuning alone never lowers precision.
  std::vector<std::string> allow;
  std::string tuning_name = "the tuning";  ///< its file, for messages
};

struct Selection {
  program::Instance instance;  ///< program, language, problem and device facts: plans and launches the point
  lattice::Point point;
  std::string variant;  ///< the point's name
  CardFit card = CardFit::none;
  SizeFit size = SizeFit::none;
  std::string measured_on;              ///< the card's key in the tuning; empty for CardFit::none
  record::ProgramClass measured_at;     ///< problem (or class) of that measurement; empty where it names none
  std::optional<double> measured_gain;  ///< over base there, ratio less 1; nullopt: not stated
  /// Of the rate that a race on this device and problem would choose, 0 to 1; an estimate from what the
  /// tuning holds (the format's page says how), 0 where this very case was raced; nullopt: the tuning holds
  /// nothing to tell it from.
  std::optional<double> expected_loss;
  std::string how;                 ///< one sentence: what was chosen, where it was measured, what it may lose
  std::vector<std::string> notes;  ///< what was passed over, and why

  /// "exact", "nearest size", "nearest card", "nearest card and size", "base".
  std::string_view fit() const;
};

/// The variant of `program` for the device and the problem (`problem` replaces defaults of the program, as in
/// Instance::make). A card or a size that the tuning does not know is no error: the nearest one answers, in
/// the end base. `invalid`: the tuning has rows, and none is of this program (the message names whose they
/// are); the program has no text in the language; `problem` names no parameter; base itself is not valid on
/// this device and problem. `program` must not be null.
Result<Selection> select(std::shared_ptr<const program::Program> program, const device::Facts& facts,
                         const std::vector<std::pair<std::string, lattice::Value>>& problem,
                         const record::Tuning& tuning, const SelectOptions& options = {});

/// The facts by the names that a program file's expressions use ("device.sm", "device.warp", …), for
/// Instance::make.
lattice::Environment expression_facts(const device::Facts& facts);

/// What a program on a device asks a tuning: silicon, label, program, class, driver.
record::TuningQuery tuning_query(const program::Instance& instance, const device::Facts& facts);

/// The first language of the device that the program has a text in; `invalid` names both sides.
Result<std::string> common_language(const program::Program& program, const device::Facts& facts);

}  // namespace furlong
