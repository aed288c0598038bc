#pragma once
// A few marks of an SVG chart: axes with round ticks, dots, intervals, lines. Colours are CSS classes of the
// page.

#include <string>
#include <string_view>
#include <vector>

namespace furlong::app {

/// A linear scale from data to pixels. Degenerate ranges are widened.
class Scale {
 public:
  Scale(double low, double high, double from_px, double to_px);
  double operator()(double value) const { return from_ + (value - low_) / (high_ - low_) * (to_ - from_); }
  double low() const { return low_; }
  double high() const { return high_; }
  /// Round tick values inside the range, about `count`.
  std::vector<double> ticks(int count) const;

 private:
  double low_, high_, from_, to_;
};

class Svg {
 public:
  Svg(int width, int height, std::string_view title);
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  void dot(double x, double y, double radius, std::string_view css, std::string_view tip = {});
  void box(double x, double y, double width, double height, std::string_view css, std::string_view tip = {});
  void path(const std::vector<std::pair<double, double>>& points, std::string_view css,
            std::string_view tip = {});
  /// anchor: start, middle, end.
  void text(double x, double y, std::string_view content, std::string_view anchor = "start",
            std::string_view css = "label");
  std::string finish();

 private:
  std::string out_;
};

}  // namespace furlong::app
