#include "furlong/stats/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "furlong/stats/centre.h"

namespace furlong::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// A column whose part orthogonal to those before it is this small against itself depends on them.
constexpr double kDependent = 1e-10;

// Column-major, so that a Householder step walks through memory.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  double& at(std::size_t row, std::size_t column) { return values[column * rows + row]; }
  double at(std::size_t row, std::size_t column) const { return values[column * rows + row]; }
};

double column_norm(const Matrix& a, std::size_t column, std::size_t from) {
  double squares = 0;
  for (std::size_t i = from; i < a.rows; ++i) squares += a.at(i, column) * a.at(i, column);
  return std::sqrt(squares);
}

// Turns a into R (upper triangle) and applies the same reflections to y.
Status triangulate(Matrix& a, std::vector<double>& y) {
  std::vector<double> v(a.rows);
  for (std::size_t k = 0; k < a.columns; ++k) {
    const double whole = column_norm(a, k, 0);
    const double norm = column_norm(a, k, k);
    if (!(norm > kDependent * whole))
      return fail(Code::invalid, "least squares: column {} depends on the columns before it", k);
    const double alpha = a.at(k, k) > 0 ? -norm : norm;
    for (std::size_t i = k; i < a.rows; ++i) v[i] = a.at(i, k);
    v[k] -= alpha;
    const double scale = 1 / (norm * (norm + std::abs(a.at(k, k))));  // 2 / |v|^2
    const auto reflect = [&](double* column) {
      double dot = 0;
      for (std::size_t i = k; i < a.rows; ++i) dot += v[i] * column[i];
      for (std::size_t i = k; i < a.rows; ++i) column[i] -= scale * dot * v[i];
    };
    for (std::size_t j = k; j < a.columns; ++j) reflect(&a.at(0, j));
    reflect(y.data());
  }
  return {};
}

std::vector<double> solve_upper(const Matrix& r, std::vector<double> y) {
  for (std::size_t k = r.columns; k-- > 0;) {
    for (std::size_t j = k + 1; j < r.columns; ++j) y[k] -= r.at(k, j) * y[j];
    y[k] /= r.at(k, k);
  }
  y.resize(r.columns);
  return y;
}

// Square roots of the diagonal of (R'R)^-1 = R^-1 R^-T: row norms of R^-1.
std::vector<double> inverse_row_norms(const Matrix& r) {
  std::vector<double> squares(r.columns, 0.0);
  for (std::size_t j = 0; j < r.columns; ++j) {
    std::vector<double> unit(r.columns, 0.0);
    unit[j] = 1;
    const std::vector<double> column = solve_upper(r, std::move(unit));
    for (std::size_t i = 0; i < r.columns; ++i) squares[i] += column[i] * column[i];
  }
  for (double& s : squares) s = std::sqrt(s);
  return squares;
}

Status check(std::span<const double> design, std::size_t columns, std::span<const double> y, double ridge) {
  const std::size_t rows = y.size();
  if (columns == 0 || rows == 0 || design.size() != rows * columns)
    return fail(Code::invalid, "least squares: {} values do not make {} rows of {} columns", design.size(),
                rows, columns);
  if (!(ridge >= 0) || !std::isfinite(ridge))
    return fail(Code::invalid, "least squares: ridge {} is negative or not finite", ridge);
  const auto bad = [](double x) { return !std::isfinite(x); };
  if (const auto at = std::find_if(design.begin(), design.end(), bad); at != design.end()) {
    const auto index = static_cast<std::size_t>(at - design.begin());
    return fail(Code::invalid, "least squares: row {} column {} is not finite", index / columns,
                index % columns);
  }
  if (const auto at = std::find_if(y.begin(), y.end(), bad); at != y.end())
    return fail(Code::invalid, "least squares: the result of row {} is not finite", at - y.begin());
  return {};
}

void judge(Fit& fit, std::span<const double> design, std::size_t columns, std::span<const double> y) {
  const double centre = mean(y);
  double about_mean = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    double fitted = 0;
    for (std::size_t j = 0; j < columns; ++j) fitted += design[i * columns + j] * fit.coefficients[j];
    fit.residuals.push_back(y[i] - fitted);
    fit.residual_squares += fit.residuals.back() * fit.residuals.back();
    about_mean += (y[i] - centre) * (y[i] - centre);
  }
  const double freedom = static_cast<double>(y.size()) - static_cast<double>(columns);
  fit.degrees_of_freedom = std::max(0.0, freedom);
  fit.residual_deviation = freedom > 0 ? std::sqrt(fit.residual_squares / freedom) : kNaN;
  if (about_mean > 0) fit.explained = std::clamp(1 - fit.residual_squares / about_mean, 0.0, 1.0);
}

}  // namespace

Result<Fit> least_squares(std::span<const double> design, std::size_t columns, std::span<const double> y,
                          double ridge, std::size_t unpenalised) {
  FURLONG_CHECK(check(design, columns, y, ridge));
  const std::size_t shrunk = ridge > 0 && unpenalised < columns ? columns - unpenalised : 0;
  Matrix a{y.size() + shrunk, columns, {}};
  if (a.rows < columns)
    return fail(Code::invalid, "least squares: {} rows cannot fix {} coefficients; add rows or ridge",
                y.size(), columns);
  a.values.assign(a.rows * columns, 0.0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j) a.at(i, j) = design[i * columns + j];
  for (std::size_t s = 0; s < shrunk; ++s) a.at(y.size() + s, columns - shrunk + s) = std::sqrt(ridge);
  std::vector<double> right(y.begin(), y.end());
  right.resize(a.rows, 0.0);

  FURLONG_CHECK(triangulate(a, right));
  Fit fit;
  fit.coefficients = solve_upper(a, std::move(right));
  judge(fit, design, columns, y);
  fit.standard_errors = inverse_row_norms(a);
  for (double& error : fit.standard_errors) error *= fit.residual_deviation;
  return fit;
}

Result<MainEffects> main_effects(std::span<const std::vector<int>> points, std::span<const int> defaults,
                                 std::span<const double> log_time, double ridge) {
  if (points.empty() || points.size() != log_time.size())
    return fail(Code::invalid, "main effects: {} points and {} times", points.size(), log_time.size());
  // One column per value that occurs and is not the default, after the intercept.
  std::map<std::pair<std::size_t, int>, int> samples;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].size() != defaults.size())
      return fail(Code::invalid, "main effects: point {} has {} values for {} knobs", i, points[i].size(),
                  defaults.size());
    for (std::size_t k = 0; k < defaults.size(); ++k)
      if (points[i][k] != defaults[k]) ++samples[{k, points[i][k]}];
  }
  std::map<std::pair<std::size_t, int>, std::size_t> column;
  for (const auto& [key, count] : samples) column.emplace(key, column.size() + 1);
  const std::size_t columns = column.size() + 1;
  std::vector<double> design(points.size() * columns, 0.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    design[i * columns] = 1;
    for (std::size_t k = 0; k < defaults.size(); ++k)
      if (points[i][k] != defaults[k]) design[i * columns + column.at({k, points[i][k]})] = 1;
  }
  auto fitted = least_squares(design, columns, log_time, ridge, 1);
  if (!fitted) return Error(std::move(fitted).error()).with("fitting main effects");
  MainEffects result;
  result.base_log_time = fitted->coefficients[0];
  result.residual_deviation = fitted->residual_deviation;
  result.explained = fitted->explained;
  for (const auto& [key, count] : samples) {
    const std::size_t c = column.at(key);
    result.effects.push_back(
        {key.first, key.second, fitted->coefficients[c], fitted->standard_errors[c], count});
  }
  return result;
}

}  // namespace furlong::stats
