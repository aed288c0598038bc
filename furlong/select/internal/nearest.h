#pragma once
// What a tuning holds for a program, nearest first.

#include <compare>
#include <string>
#include <vector>

#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/record/tuning.h"
#include "furlong/select/select.h"

namespace furlong::selecting {

/// Words that differ, then the sum of squared log ratios of the numbers.
struct Distance {
  int words = 0;
  double squares = 0;
  bool zero() const { return words == 0 && squares == 0; }
  auto operator<=>(const Distance&) const = default;
};

/// From one list of values to another; a name that `to` lacks counts as a word that differs.
Distance distance(const record::ProgramClass& from, const record::ProgramClass& to);

/// Who asks.
struct Question {
  record::TuningQuery query;     ///< silicon, label, program, class, driver
  record::ProgramClass problem;  ///< all parameters
  std::string backend;
};

/// One measurement that could answer.
struct Entry {
  const record::TuningCard* card = nullptr;
  const record::TuningRow* row = nullptr;
  const record::TuningSize* size = nullptr;  ///< nullptr: the row names none
  CardFit card_fit = CardFit::none;
  SizeFit size_fit = SizeFit::none;
};

/// Every measurement of the program by this back end on cards of this vendor, the best answer first. `notes`
/// gets why rows were passed over.
std::vector<Entry> ranked(const record::Tuning& tuning, const Question& question,
                          std::vector<std::string>& notes);
/// The same for one card, whatever its vendor; rows are taken whatever their driver.
std::vector<Entry> ranked_on(const record::TuningCard& card, const Question& question);

}  // namespace furlong::selecting
