#include "furlong/base/table.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "furlong/base/text.h"

namespace furlong {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Characters that take no column: combining marks, joiners and variation selectors.
constexpr std::array<Range, 12> narrow_none = {{{0x0300, 0x036F},
                                                {0x0483, 0x0489},
                                                {0x0591, 0x05BD},
                                                {0x0610, 0x061A},
                                                {0x064B, 0x065F},
                                                {0x1AB0, 0x1AFF},
                                                {0x1DC0, 0x1DFF},
                                                {0x200B, 0x200F},
                                                {0x20D0, 0x20FF},
                                                {0xFE00, 0xFE0F},
                                                {0xFE20, 0xFE2F},
                                                {0xFEFF, 0xFEFF}}};

// East Asian wide and full-width characters and emoji (Unicode, EastAsianWidth, the W and F blocks):
// two columns. Blocks rather than single characters: card and file names are what stands in tables.
constexpr std::array<Range, 12> wide = {{{0x1100, 0x115F},
                                         {0x2E80, 0x303E},
                                         {0x3041, 0xA4CF},
                                         {0xA960, 0xA97C},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE6F},
                                         {0xFF00, 0xFF60},
                                         {0xFFE0, 0xFFE6},
                                         {0x1F300, 0x1F64F},
                                         {0x1F680, 0x1F9FF},
                                         {0x20000, 0x3FFFD}}};

template <std::size_t N>
bool within(std::uint32_t point, const std::array<Range, N>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

void put(std::string& line, const std::string& cell, std::size_t width, Table::Align align) {
  const std::string blank(width - std::min(width, display_width(cell)), ' ');
  if (align == Table::Align::right) line += blank;
  line += cell;
  if (align == Table::Align::left) line += blank;
}

void end_line(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
  line += '\n';
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    std::uint32_t point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      if (i + k >= text.size() || (static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) {
        length = k;  // a broken sequence: terminals show one replacement character
        point = 0xFFFD;
        break;
      }
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    width += within(point, narrow_none) ? 0 : within(point, wide) ? 2 : 1;
    i += length;
  }
  return width;
}

void Table::column(std::string heading, Align align) { columns_.push_back({one_line(heading), align}); }

void Table::row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = one_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  static const std::string empty;
  const auto cell_of = [](const std::vector<std::string>& row, std::size_t c) -> const std::string& {
    return c < row.size() ? row[c] : empty;
  };
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].heading);
    for (const auto& row : rows_) width = std::max(width, display_width(cell_of(row, c)));
    widths.push_back(width);
  }
  std::string all;
  const auto print = [&](const auto& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      put(line, cell(c), widths[c], columns_[c].align);
    }
    end_line(line);
    all += line;
  };
  print([&](std::size_t c) { return columns_[c].heading; });
  print([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) print([&](std::size_t c) { return cell_of(row, c); });
  return all;
}

}  // namespace furlong
