#include "bench/trace.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "furlong/base/text.h"
#include "furlong/stats/centre.h"

namespace furlong::bench {
namespace {

Result<std::string> read_gzip(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return fail(Code::unavailable, "{}: cannot be opened", path.string());
  std::string text;
  std::vector<char> block(1 << 16);
  for (;;) {
    const int got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    if (got < 0) {
      int number = 0;
      return fail(Code::corrupt, "{}: {} after {} bytes", path.string(), gzerror(file.get(), &number),
                  text.size());
    }
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

struct Line {
  std::string scenario;
  std::size_t heat = 0, kernel = 0;
  Trace::Window window;
};

Result<Line> parse_line(std::string_view text) {
  const std::vector<std::string> cells = split(text, ',');
  constexpr std::size_t kFixed = 4, kLaunches = 16;
  if (cells.size() != kFixed + kLaunches)
    return fail(Code::corrupt, "expected {} columns, found {}", kFixed + kLaunches, cells.size());
  Line line;
  line.scenario = cells[0];
  FURLONG_TRY(const std::int64_t heat, parse_integer(cells[1]));
  FURLONG_TRY(const std::int64_t kernel, parse_integer(cells[2]));
  if (heat < 0 || kernel < 0) return fail(Code::corrupt, "negative heat or kernel");
  line.heat = static_cast<std::size_t>(heat);
  line.kernel = static_cast<std::size_t>(kernel);
  std::vector<double> launches;
  for (std::size_t i = kFixed; i < cells.size(); ++i) {
    FURLONG_TRY(const double ms, parse_number(cells[i]));
    if (!(ms > 0 && std::isfinite(ms))) return fail(Code::corrupt, "a launch took '{}' ms", cells[i]);
    launches.push_back(ms);
  }
  line.window.first = launches.front();
  line.window.mean_with_first = stats::mean(launches);
  const auto rest = std::span<const double>(launches).subspan(1);
  line.window.median = stats::median(rest);
  line.window.mean = stats::mean(rest);
  return line;
}

Status finish(Trace& trace) {
  std::vector<double> medians, firsts;
  for (std::size_t h = 0; h < trace.heats.size(); ++h) {
    if (trace.heats[h].size() != trace.kernels)
      return fail(Code::corrupt, "scenario {}: heat {} has {} of {} kernels", trace.scenario, h,
                  trace.heats[h].size(), trace.kernels);
    for (const Trace::Window& window : trace.heats[h]) {
      medians.push_back(window.median);
      firsts.push_back(window.first);
    }
  }
  trace.launch_ms = stats::median(medians);
  trace.first_launch_ms = stats::mean(firsts);
  return {};
}

}  // namespace

Result<std::vector<Trace>> read_traces(const std::filesystem::path& path) {
  FURLONG_TRY(const std::string text, read_gzip(path));
  std::vector<Trace> traces;
  std::size_t number = 0;
  for (const std::string& row : split(text, '\n')) {
    if (++number == 1 || row.empty()) continue;  // the heading; the end
    auto parsed = parse_line(row);
    if (!parsed) return Error(std::move(parsed).error()).with(fmt::format("{}:{}", path.string(), number));
    const Line& line = *parsed;
    if (traces.empty() || traces.back().scenario != line.scenario) {
      traces.emplace_back();
      traces.back().scenario = line.scenario;
    }
    Trace& trace = traces.back();
    // Within a scenario the heats stand in order; the kernels of a heat may not.
    if (line.heat != trace.heats.size() && line.heat + 1 != trace.heats.size())
      return fail(Code::corrupt, "{}:{}: heat {} is out of order", path.string(), number, line.heat);
    if (line.heat == trace.heats.size()) trace.heats.emplace_back();
    auto& heat = trace.heats.back();
    trace.kernels = std::max(trace.kernels, line.kernel + 1);
    if (heat.size() <= line.kernel) heat.resize(line.kernel + 1);
    heat[line.kernel] = line.window;
  }
  if (traces.empty()) return fail(Code::corrupt, "{}: no windows", path.string());
  for (Trace& trace : traces) {
    FURLONG_CHECK_DOING(finish(trace), "reading {}", path.string());
    for (const auto& heat : trace.heats)
      for (const auto& window : heat)
        if (!(window.median > 0))
          return fail(Code::corrupt, "{}: scenario {}: a kernel is missing from a heat", path.string(),
                      trace.scenario);
  }
  return traces;
}

}  // namespace furlong::bench
