#pragma once
// What a race shows on a terminal: the progress line while it runs, the table, the explanation.

#include <cstdio>
#include <string>

#include "furlong/race/race.h"

namespace furlong::app {

/// "118.3" with enough digits for 4 significant ones.
std::string rate_text(const program::WorkSpec& work, double units_per_second);

/// The table and the decision below it.
std::string race_table(const program::Instance& instance, const race::Outcome& outcome);

/// One line that is redrawn on a terminal; a line per phase elsewhere. Not thread safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* out, bool enabled);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const race::Progress& progress);
  /// Removes the line, so that a table can follow.
  void clear();

 private:
  std::FILE* out_;
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  int last_phase_ = -1;
};

}  // namespace furlong::app
