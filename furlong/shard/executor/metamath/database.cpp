#include "furlong/shard/executor/metamath/database.h"

#include <algorithm>

#include "furlong/base/text.h"
#include "furlong/shard/executor/metamath/internal/parser.h"

namespace furlong::shard::metamath {

Result<Database> Database::read(const std::filesystem::path& file, Files& files) {
  Database database;
  Parser parser(database, &files);
  FURLONG_CHECK(parser.read_file(file));
  FURLONG_CHECK(parser.finish());
  return database;
}

Result<Database> Database::parse(std::string text, std::string name) {
  Database database;
  Parser parser(database, nullptr);
  FURLONG_CHECK(parser.read_text(std::move(name), std::move(text)));
  FURLONG_CHECK(parser.finish());
  return database;
}

void Database::all_distinct(const Assertion& theorem, std::vector<Distinct>& into) const {
  into.clear();
  for (std::uint32_t i = 0; i < theorem.scopes.count; ++i) {
    const Expression set = expression(disjoint_statements_[in_force_[theorem.scopes.begin + i]]);
    for (std::size_t j = 0; j < set.size(); ++j)
      for (std::size_t k = j + 1; k < set.size(); ++k)
        into.push_back({std::min(set[j], set[k]), std::max(set[j], set[k])});
  }
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

std::optional<Database::Label> Database::find(std::string_view label) const {
  const auto found = labels_.find(label);
  if (!found) return std::nullopt;
  return Label{(*found & 1) != 0, *found / 2};
}

std::string Database::at(Place place) const {
  const Source& source = sources_[place.source];
  return fmt::format("{}:{}", source.name, position_at(source.text, place.offset).line);
}

}  // namespace furlong::shard::metamath
