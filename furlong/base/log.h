#pragma once
// Leveled messages. The library writes nothing by itself: until an application installs a sink
// (log_to_stderr), messages go nowhere. Thread safe.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace furlong {

enum class LogLevel { debug, info, warning, error };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink; an empty function silences. Returns the previous one. The sink is called by one
/// thread at a time; what it throws is dropped.
LogSink set_log_sink(LogSink sink, LogLevel minimum = LogLevel::info);
/// Installs spdlog's stderr sink ("12:00:01 warning: …").
void log_to_stderr(LogLevel minimum);
void log_message(LogLevel level, std::string_view text);
bool log_enabled(LogLevel level);

template <class... A>
void log_info(fmt::format_string<A...> format, A&&... args) {
  if (log_enabled(LogLevel::info)) log_message(LogLevel::info, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void log_warning(fmt::format_string<A...> format, A&&... args) {
  if (log_enabled(LogLevel::warning))
    log_message(LogLevel::warning, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void log_debug(fmt::format_string<A...> format, A&&... args) {
  if (log_enabled(LogLevel::debug))
    log_message(LogLevel::debug, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void log_error(fmt::format_string<A...> format, A&&... args) {
  if (log_enabled(LogLevel::error))
    log_message(LogLevel::error, fmt::format(format, std::forward<A>(args)...));
}

}  // namespace furlong
