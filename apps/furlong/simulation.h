#pragma once
// The simulated device of the command line: its launches compute by the program's built-in reference, its
// clock is virtual.

#include <memory>

#include "furlong/base/os/clock.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"

namespace furlong::app {

class Simulation {
 public:
  Simulation();
  ~Simulation();
  /// "sim" or "sim:N"; $FURLONG_SIM may name a file of options (docs/formats/sim.md).
  Result<std::unique_ptr<device::Device>> open(const std::string& address);
  /// The program that launches compute from now on; the instance must outlive the races.
  void attach(const program::Instance& instance);
  Clock& clock();

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<device::Driver> driver_;
};

}  // namespace furlong::app
