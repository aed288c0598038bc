#pragma once
// What a driver of a worker talks to. The device is owned by a process behind it, the back, in which foreign
// kernels run: when that one traps, hangs or is killed, the front starts another, without the variant that
// ended it, and work goes on at the nonce where it was. Each find and each nonce is told once all the same.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"

namespace furlong::worker {

struct FrontOptions {
  /// argv of the back; the front adds --prepares-before N --hashes-before N.
  std::vector<std::string> back;
  double start_limit_s = 120;  ///< for opening the device
  double quit_limit_s = 30;    ///< for an orderly end
  double first_delay_s = 1;    ///< before a restart, from the second in a row on; doubled each time
  double most_delay_s = 30;
  int most_deaths = 8;  ///< in a row without one chunk done
};

/// How the worker ended.
struct FrontEnd {
  int code = 0;     ///< 0, or the exit status of a back that could not begin
  std::string why;  ///< empty: orderly
};

class Front {
 public:
  /// `write` sends one line to the outside; it may block, and its Error ends the worker. Called on a thread
  /// of its own.
  Front(Processes& processes, Clock& clock, const FrontOptions& options,
        std::function<Status(std::string_view)> write);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  /// A command's line; from any thread.
  void submit_line(std::string_view line);
  /// There will be no more: as `quit`. From any thread.
  void close_input();

  /// Until `quit`, the end of the input, or the stop token.
  Result<FrontEnd> run(std::stop_token stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace furlong::worker
