#include "furlong/base/json_object.h"

#include "furlong/base/json.h"
#include "furlong/base/text.h"

namespace furlong {

JsonObject::JsonObject(const Json& value, std::string where) : where_(std::move(where)) {
  if (value.is_object())
    object_ = &value;
  else
    keep(fail(Code::invalid, "{} must be an object, not {}", where_, value.type_name()));
}

std::string JsonObject::path(std::string_view key) const { return fmt::format("{}.{}", where_, key); }

void JsonObject::keep(Error error) {
  if (!error_) error_ = std::move(error);
}

void JsonObject::wrong(std::string_view key, const Json& found, std::string_view wanted) {
  keep(fail(Code::invalid, "{}.{} must be {}, not {}", where_, key, wanted, found.type_name()));
}

const Json* JsonObject::value(std::string_view key) {
  asked_.emplace(key);
  if (object_ == nullptr) return nullptr;
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json* JsonObject::object(std::string_view key) {
  const Json* const found = value(key);
  if (found == nullptr || found->is_object()) return found;
  wrong(key, *found, "an object");
  return nullptr;
}

const Json* JsonObject::array(std::string_view key) {
  const Json* const found = value(key);
  if (found == nullptr || found->is_array()) return found;
  wrong(key, *found, "an array");
  return nullptr;
}

void JsonObject::text(std::string_view key, std::string& into) {
  const Json* const found = value(key);
  if (found == nullptr) return;
  if (!found->is_string()) return wrong(key, *found, "a string");
  into = found->get_ref<const std::string&>();
}

void JsonObject::texts(std::string_view key, std::vector<std::string>& into) {
  const Json* const found = array(key);
  if (found == nullptr) return;
  std::vector<std::string> read;
  for (const Json& item : *found) {
    if (!item.is_string())
      return keep(fail(Code::invalid, "{}.{}[{}] must be a string, not {}", where_, key, read.size(),
                       item.type_name()));
    read.push_back(item.get_ref<const std::string&>());
  }
  into = std::move(read);
}

void JsonObject::boolean(std::string_view key, bool& into) {
  const Json* const found = value(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) return wrong(key, *found, "true or false");
  into = found->get<bool>();
}

void JsonObject::number(std::string_view key, double& into, double least, double most) {
  const Json* const found = value(key);
  if (found == nullptr) return;
  if (!found->is_number()) return wrong(key, *found, "a number");
  const double read = found->get<double>();
  if (!(read >= least && read <= most))  // also refuses NaN
    return keep(fail(Code::invalid, "{}.{} is {}: must be from {} to {}", where_, key, read, least, most));
  into = read;
}

void JsonObject::number(std::string_view key, std::optional<double>& into, double least) {
  if (value(key) == nullptr) return;
  double read = least;
  number(key, read, least);
  into = read;
}

template <class T>
void JsonObject::whole(std::string_view key, T& into, T least, T most) {
  const Json* const found = value(key);
  if (found == nullptr) return;
  if (!found->is_number_integer()) return wrong(key, *found, "a whole number");
  bool fits;
  if (found->is_number_unsigned()) {
    const auto read = found->get<std::uint64_t>();
    fits = std::in_range<T>(read) && static_cast<T>(read) >= least && static_cast<T>(read) <= most;
  } else {
    const auto read = found->get<std::int64_t>();
    fits = std::in_range<T>(read) && static_cast<T>(read) >= least && static_cast<T>(read) <= most;
  }
  if (!fits)
    return keep(
        fail(Code::invalid, "{}.{} is {}: must be from {} to {}", where_, key, found->dump(), least, most));
  into = found->get<T>();
}

void JsonObject::integer(std::string_view key, int& into, int least, int most) {
  whole(key, into, least, most);
}

void JsonObject::integer(std::string_view key, std::optional<int>& into, int least) {
  if (value(key) == nullptr) return;
  int read = least;
  integer(key, read, least);
  into = read;
}

void JsonObject::integer(std::string_view key, std::uint64_t& into, std::uint64_t least, std::uint64_t most) {
  whole(key, into, least, most);
}

void JsonObject::integer(std::string_view key, std::optional<std::uint64_t>& into) {
  if (value(key) == nullptr) return;
  std::uint64_t read = 0;
  integer(key, read);
  into = read;
}

void JsonObject::require(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (object_ != nullptr && value(key) == nullptr)
      keep(fail(Code::invalid, "{}.{} is missing", where_, key));
}

Status JsonObject::status() const {
  if (error_) return *error_;
  return {};
}

Status JsonObject::strict() const {
  FURLONG_CHECK(status());
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [key, unused] : object_->items())
    if (!asked_.contains(key))
      return fail(Code::invalid, "{}: unknown key '{}'{}", where_, key, did_you_mean(key, known));
  return {};
}

std::string JsonObject::unknown() const {
  Json rest = Json::object();
  if (object_ != nullptr)
    for (const auto& [key, member] : object_->items())
      if (!asked_.contains(key)) rest[key] = member;
  return rest.empty() ? std::string() : json_line(rest);
}

void add_unknown(Json& object, std::string_view extra) {
  if (extra.empty()) return;
  const auto rest = json_parse(extra, "unknown keys");
  if (!rest || !rest->is_object()) return;  // only unknown() makes them
  for (const auto& [key, member] : rest->items())
    if (!object.contains(key)) object[key] = member;
}

}  // namespace furlong
