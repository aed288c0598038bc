#include "furlong/base/json.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "furlong/base/text.h"

namespace furlong {
namespace {

using Object = Json::object_t;

// Reads the text and tells how far it has come, so that an error found in the tree (a duplicate
// key, too much depth) can name the byte: nlohmann's SAX events carry no position.
class CountedInput {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedInput(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  CountedInput& operator++() {
    ++at_;
    if (furthest_ != nullptr) *furthest_ = at_;
    return *this;
  }
  CountedInput operator++(int) {
    CountedInput before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedInput& other) const { return at_ == other.at_; }
  bool operator!=(const CountedInput& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value
// - invalid literal; last read: '…'" → "syntax error while parsing value - invalid literal". What was
// last read may be any bytes, and the position is said by us.
std::string reason_of(std::string_view what) {
  if (const std::size_t bracket = what.find("] "); bracket != std::string_view::npos)
    what.remove_prefix(bracket + 2);
  if (what.starts_with("parse error"))
    if (const std::size_t colon = what.find(": "); colon != std::string_view::npos)
      what.remove_prefix(colon + 2);
  what = what.substr(0, what.find("; last read:"));
  return is_valid_utf8(what) ? std::string(what) : "syntax error";
}

// Builds the tree from SAX events.
class Builder {
 public:
  Builder(std::string_view text, std::string_view name, int max_depth, const char** at)
      : text_(text), name_(name), max_depth_(max_depth), at_(at) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& digits) {
    if (!std::isfinite(value))
      return stop(fmt::format("the number {} does not fit a double", digits.substr(0, 40)));
    return put(value);
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return stop("binary data is not JSON"); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Frame& frame = frames_.back();
    Object& object = frame.value->get_ref<Object&>();
    // Few keys are compared one by one; many through a set, or a hostile file would cost quadratic time.
    static constexpr std::size_t few = 16;
    bool seen = false;
    if (object.size() < few) {
      for (const auto& member : object) seen = seen || member.first == name;
    } else {
      if (frame.keys.empty())
        for (const auto& member : object) frame.keys.insert(member.first);
      seen = !frame.keys.insert(name).second;
    }
    if (seen) return stop(fmt::format("the key '{}' stands twice in one object", name));
    // Past ordered_map::emplace, which would search for the key once more.
    static_cast<Object::Container&>(object).emplace_back(std::move(name), nullptr);
    frame.member = &object.back().second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) {
    // nlohmann counts what it has read, the offending byte with it.
    return stop_at(position == 0 ? 0 : position - 1, reason_of(problem.what()));
  }

  // Records the error and ends the parse.
  bool stop_at(std::size_t offset, const std::string& what) {
    offset = std::min(offset, text_.size());
    const TextPosition position = position_at(text_, offset);
    error = fail(Code::invalid, "{}: byte {} (line {}, column {}): {}", name_, offset, position.line,
                 position.column, what);
    return false;
  }

  std::optional<Error> error;
  Json root;

 private:
  struct Frame {
    Json* value;
    Json* member = nullptr;  // of an object: where the next value goes
    std::unordered_set<std::string> keys;
  };

  Json* place(Json&& value) {
    if (frames_.empty()) {
      root = std::move(value);
      return &root;
    }
    Frame& frame = frames_.back();
    if (frame.value->is_object()) {
      *frame.member = std::move(value);
      return frame.member;
    }
    frame.value->push_back(std::move(value));
    return &frame.value->back();
  }

  template <class T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json&& value) {
    if (static_cast<int>(frames_.size()) >= max_depth_)
      return stop(fmt::format("nested deeper than {} levels", max_depth_));
    Json* const placed = place(std::move(value));
    frames_.push_back({placed, nullptr, {}});
    return true;
  }
  bool close() {
    frames_.pop_back();
    return true;
  }
  bool stop(const std::string& what) {
    const auto read = static_cast<std::size_t>(*at_ - text_.data());
    return stop_at(read == 0 ? 0 : read - 1, what);
  }

  std::string_view text_;
  std::string_view name_;
  int max_depth_;
  const char** at_;
  std::vector<Frame> frames_;
};

Result<const Json*> member_of(const Json& object, std::string_view key, std::string_view name) {
  if (!object.is_object())
    return fail(Code::invalid, "{} must be an object, not {}", name, object.type_name());
  const auto found = object.find(key);
  if (found == object.end()) return fail(Code::invalid, "{}.{} is missing", name, key);
  return &*found;
}

Error wrong_type(const Json& value, std::string_view key, std::string_view name, std::string_view wanted) {
  return fail(Code::invalid, "{}.{} must be {}, not {}", name, key, wanted, value.type_name());
}

}  // namespace

Result<Json> json_parse(std::string_view text, std::string_view name, JsonLimits limits) {
  if (text.size() > limits.max_bytes)
    return fail(Code::invalid, "{}: {} are more than the {} allowed for JSON", name, human_bytes(text.size()),
                human_bytes(limits.max_bytes));
  if (text.starts_with("\xEF\xBB\xBF"))  // nlohmann would skip it
    return fail(Code::invalid,
                "{}: byte 0 (line 1, column 1): begins with a byte order mark: save it without one", name);
  const char* at = text.data();
  Builder builder(text, name, limits.max_depth, &at);
  try {
    const bool whole = Json::sax_parse(CountedInput(text.data(), &at),
                                       CountedInput(text.data() + text.size(), nullptr), &builder);
    if (builder.error) return *std::move(builder.error);
    // nlohmann takes a zero byte for the end of the text, whatever follows; JSON has none anywhere.
    if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
      builder.stop_at(zero, "a zero byte is not JSON");
      return *std::move(builder.error);
    }
    if (!whole) return fail(Code::internal, "{}: the JSON reader stopped and did not say why", name);
  } catch (const std::bad_alloc&) {
    return fail(Code::exhausted, "{}: not enough memory to read {} of JSON", name, human_bytes(text.size()));
  } catch (const std::exception& error) {
    return fail(Code::invalid, "{}: {}", name, reason_of(error.what()));
  }
  return std::move(builder.root);
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_pretty(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> json_string(const Json& object, std::string_view key, std::string_view name) {
  FURLONG_TRY(const Json* value, member_of(object, key, name));
  if (!value->is_string()) return wrong_type(*value, key, name, "a string");
  return value->get_ref<const std::string&>();
}

Result<double> json_number(const Json& object, std::string_view key, std::string_view name) {
  FURLONG_TRY(const Json* value, member_of(object, key, name));
  if (!value->is_number()) return wrong_type(*value, key, name, "a number");
  return value->get<double>();
}

Result<std::int64_t> json_integer(const Json& object, std::string_view key, std::string_view name) {
  FURLONG_TRY(const Json* value, member_of(object, key, name));
  if (!value->is_number_integer()) {
    if (value->is_number()) return fail(Code::invalid, "{}.{} must be a whole number", name, key);
    return wrong_type(*value, key, name, "a whole number");
  }
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fail(Code::invalid, "{}.{} does not fit a 64-bit integer", name, key);
  return value->get<std::int64_t>();
}

Result<bool> json_bool(const Json& object, std::string_view key, std::string_view name) {
  FURLONG_TRY(const Json* value, member_of(object, key, name));
  if (!value->is_boolean()) return wrong_type(*value, key, name, "true or false");
  return value->get<bool>();
}

}  // namespace furlong
