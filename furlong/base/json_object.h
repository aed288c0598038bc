#pragma once
// Reads the members of a JSON object one by one into plain variables, keeps the first thing that is wrong,
// and knows which keys nobody asked for: refused in files that people write, kept in records that newer
// programs write.

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/json_fwd.h"

namespace furlong {

/// One thread at a time; the JSON value must live as long. Every getter leaves its variable alone when the
/// key is absent, and for optional variables also when it is null; a wrong type or a value out of range is
/// kept as the error.
class JsonObject {
 public:
  /// `where` names the object in messages: "sim.json: devices[0]". A value that is no object is the first
  /// error.
  JsonObject(const Json& value, std::string where);

  void text(std::string_view key, std::string& into);
  void texts(std::string_view key, std::vector<std::string>& into);
  void boolean(std::string_view key, bool& into);
  /// Finite numbers in [least, most].
  void number(std::string_view key, double& into, double least = std::numeric_limits<double>::lowest(),
              double most = std::numeric_limits<double>::max());
  void number(std::string_view key, std::optional<double>& into,
              double least = std::numeric_limits<double>::lowest());
  void integer(std::string_view key, int& into, int least = 0, int most = std::numeric_limits<int>::max());
  void integer(std::string_view key, std::optional<int>& into, int least = 0);
  void integer(std::string_view key, std::uint64_t& into, std::uint64_t least = 0,
               std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  void integer(std::string_view key, std::optional<std::uint64_t>& into);
  /// The member, or nullptr when it is absent or null; counts as asked for.
  const Json* value(std::string_view key);
  /// As value(), with another type than that an error (and nullptr).
  const Json* object(std::string_view key);
  const Json* array(std::string_view key);
  /// `invalid` when any of the keys is absent or null.
  void require(std::initializer_list<std::string_view> keys);

  /// Keeps `error` when it is the first.
  void keep(Error error);
  /// "where.key", for the error of a nested reader.
  std::string path(std::string_view key) const;
  /// The first error. Unknown keys are no error here.
  Status status() const;
  /// The first error, else the first unknown key with the known one nearest to it.
  Status strict() const;
  /// The members nobody asked for as one JSON object on one line, in their order; empty when there are none.
  std::string unknown() const;

 private:
  template <class T>
  void whole(std::string_view key, T& into, T least, T most);
  void wrong(std::string_view key, const Json& found, std::string_view wanted);

  const Json* object_ = nullptr;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> error_;
};

/// Appends the members of `extra` (what unknown() gave; may be empty) that `object` does not have yet.
void add_unknown(Json& object, std::string_view extra);

}  // namespace furlong
