#include "furlong/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace furlong {
namespace {

constexpr int silent = 100;  // above every level

struct Log {
  std::recursive_mutex mutex;  // recursive: a sink may call code that logs
  std::shared_ptr<LogSink> sink;
  std::atomic<int> minimum{silent};
};

Log& the_log() {
  static Log* const log = new Log;  // never destroyed: threads may log while the program ends
  return *log;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

LogSink set_log_sink(LogSink sink, LogLevel minimum) {
  Log& log = the_log();
  const std::scoped_lock lock(log.mutex);
  LogSink previous = log.sink ? *log.sink : LogSink();
  log.minimum = sink ? static_cast<int>(minimum) : silent;
  // A new object, not an assignment: the old function may be running, further down this stack.
  log.sink = sink ? std::make_shared<LogSink>(std::move(sink)) : nullptr;
  return previous;
}

void log_to_stderr(LogLevel minimum) {
  try {
    auto logger =
        std::make_shared<spdlog::logger>("furlong", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("%H:%M:%S %^%l%$: %v");
    logger->flush_on(spdlog::level::trace);
    set_log_sink(
        [logger](LogLevel level, std::string_view text) { logger->log(spdlog_level(level), "{}", text); },
        minimum);
  } catch (const std::exception&) {
    set_log_sink({});  // no stderr to write to: messages go nowhere, as without a sink
  }
}

void log_message(LogLevel level, std::string_view text) {
  if (!log_enabled(level)) return;
  Log& log = the_log();
  const std::scoped_lock lock(log.mutex);
  const std::shared_ptr<LogSink> sink = log.sink;
  if (!sink) return;
  try {
    (*sink)(level, text);
  } catch (...) {  // a message that cannot be delivered must not change what the program does
  }
}

bool log_enabled(LogLevel level) { return static_cast<int>(level) >= the_log().minimum; }

}  // namespace furlong
