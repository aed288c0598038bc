#include "apps/furlong/report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "furlong/base/text.h"

namespace furlong::app {

Scale::Scale(double low, double high, double from_px, double to_px)
    : low_(low), high_(high), from_(from_px), to_(to_px) {
  if (!(high_ > low_)) {
    const double pad = std::abs(low_) > 0 ? std::abs(low_) * 0.01 : 1;
    low_ -= pad;
    high_ = low_ + 2 * pad;
  }
}

std::vector<double> Scale::ticks(int count) const {
  const double rough = (high_ - low_) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough) break;
  }
  std::vector<double> values;
  for (double value = std::ceil(low_ / step) * step; value <= high_ + step * 1e-9; value += step)
    values.push_back(std::abs(value) < step * 1e-9 ? 0 : value);
  return values;
}

Svg::Svg(int width, int height, std::string_view title) {
  out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<title>{}</title>\n", width,
                     height, html_escape(title), html_escape(title));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1,
                      y1, x2, y2, css);
}

namespace {
std::string tip_element(std::string_view tip) {
  return tip.empty() ? std::string() : fmt::format("<title>{}</title>", html_escape(tip));
}
}  // namespace

void Svg::dot(double x, double y, double radius, std::string_view css, std::string_view tip) {
  out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\">{}</circle>\n", x, y,
                      radius, css, tip_element(tip));
}

void Svg::box(double x, double y, double width, double height, std::string_view css, std::string_view tip) {
  out_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\">{}</rect>\n", x, y,
      std::max(width, 0.5), height, css, tip_element(tip));
}

void Svg::path(const std::vector<std::pair<double, double>>& points, std::string_view css,
               std::string_view tip) {
  if (points.empty()) return;
  out_ += fmt::format("<polyline class=\"{}\" points=\"", css);
  for (const auto& [x, y] : points) out_ += fmt::format("{:.1f},{:.1f} ", x, y);
  out_ += fmt::format("\">{}</polyline>\n", tip_element(tip));
}

void Svg::text(double x, double y, std::string_view content, std::string_view anchor, std::string_view css) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                      anchor, css, html_escape(content));
}

std::string Svg::finish() { return out_ + "</svg>\n"; }

}  // namespace furlong::app
