#include "furlong/interop/t1.h"

#include <algorithm>
#include <limits>
#include <set>

#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/interop/python_list.h"
#include "furlong/lattice/space.h"

namespace furlong::interop {
namespace {

using lattice::Applies;
using lattice::Expression;
using lattice::Knob;
using lattice::Point;
using lattice::Value;

constexpr std::uint64_t kMostSearchedPoints = 1'000'000;
constexpr std::size_t kMostNodes = 5'000'000;

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

/// nullopt for what is no single value.
std::optional<Value> value_of(const Json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  return std::nullopt;
}

bool is_name(std::string_view text) {
  const auto parsed = Expression::parse(text);
  return parsed && parsed->variables().size() == 1 && parsed->variables()[0] == text;
}

/// "block_size_x_32": no '-' inside, so that names of variants cannot be ambiguous.
std::string tag_of(const std::string& name, const Value& value, std::set<std::string>& used) {
  std::string tag = name + "_";
  for (const char c : value.text()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    tag += plain ? c : c == '-' ? 'm' : '_';
  }
  const std::string first = tag;
  for (int n = 2; !used.insert(tag).second; ++n) tag = fmt::format("{}.{}", first, n);
  return tag;
}

class Reader {
 public:
  Reader(const Json& document, std::string_view name) : document_(document), name_(name) {}

  Result<T1Problem> run() {
    const Json* space = member(document_, "ConfigurationSpace");
    if (space == nullptr) return fail(Code::invalid, "{}: no ConfigurationSpace; is it a T1 file?", name_);
    read_heading();
    FURLONG_CHECK(read_parameters(*space));
    FURLONG_CHECK(read_conditions(*space));
    mark_launch_knobs();
    repair_base();
    return std::move(problem_);
  }

 private:
  void read_heading() {
    if (const Json* general = member(document_, "General"))
      problem_.name = text_member(*general, "BenchmarkName");
    const Json* kernel = member(document_, "KernelSpecification");
    if (kernel == nullptr) return;
    problem_.language = text_member(*kernel, "Language");
    for (char& c : problem_.language)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    problem_.kernel_name = text_member(*kernel, "KernelName");
    problem_.kernel_file = text_member(*kernel, "KernelFile");
    if (const Json* options = member(*kernel, "CompilerOptions"); options != nullptr && options->is_array())
      for (const auto& option : *options)
        if (option.is_string()) problem_.compiler_options.push_back(option.get<std::string>());
    if (const Json* sizes = member(*kernel, "ProblemSize"); sizes != nullptr && sizes->is_array())
      for (const auto& size : *sizes)
        if (const auto value = value_of(size); value && value->is_integer())
          problem_.problem_size.push_back(*value->integer());
  }

  Status read_parameters(const Json& space) {
    const Json* parameters = member(space, "TuningParameters");
    if (parameters == nullptr || !parameters->is_array())
      return fail(Code::invalid, "{}: ConfigurationSpace.TuningParameters must be an array", name_);
    for (std::size_t i = 0; i < parameters->size(); ++i)
      FURLONG_CHECK(read_parameter((*parameters)[i], fmt::format("{}: TuningParameters[{}]", name_, i)));
    return {};
  }

  Status read_parameter(const Json& parameter, const std::string& where) {
    const std::string name = text_member(parameter, "Name");
    if (!is_name(name))
      return fail(Code::invalid, "{}: Name '{}' must be a name that expressions can use", where, name);
    if (!names_.insert(name).second)
      return fail(Code::invalid, "{}: two parameters are named '{}'", where, name);
    problem_.parameters.push_back(name);
    FURLONG_TRY(auto values, read_values(parameter, fmt::format("{} ({}): Values", where, name)));
    if (values.empty()) return fail(Code::invalid, "{} ({}): Values is empty", where, name);
    for (std::size_t v = 0; v < values.size(); ++v)
      if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(v), values[v]) !=
          values.begin() + static_cast<std::ptrdiff_t>(v))
        return fail(Code::invalid, "{} ({}): the value {} occurs twice", where, name, values[v].literal());
    const std::size_t chosen = default_index(parameter, name, values);
    if (values.size() == 1) {
      problem_.fixed.emplace_back(name, values[0]);
      return {};
    }
    Knob knob;
    knob.name = name;
    knob.default_index = chosen;
    knob.applies = {Applies::define};
    for (std::size_t v = 0; v < values.size(); ++v)
      knob.tags.push_back(v == chosen ? "" : tag_of(name, values[v], tags_));
    knob.values = std::move(values);
    problem_.lattice.knobs.push_back(std::move(knob));
    return {};
  }

  /// A Python list as text, or a JSON array.
  Result<std::vector<Value>> read_values(const Json& parameter, const std::string& where) {
    const Json* json = member(parameter, "Values");
    if (json != nullptr && json->is_string()) {
      auto values = python_list(json->get<std::string>());
      if (!values) return fail(Code::invalid, "{}: {}", where, values.error().message());
      return values;
    }
    if (json == nullptr || !json->is_array())
      return fail(Code::invalid, "{} must be a list, as Python or JSON writes it", where);
    std::vector<Value> values;
    for (const auto& item : *json) {
      auto value = value_of(item);
      if (!value) return fail(Code::invalid, "{}: {} is no number, boolean or word", where, json_line(item));
      values.push_back(std::move(*value));
    }
    return values;
  }

  std::size_t default_index(const Json& parameter, const std::string& name,
                            const std::vector<Value>& values) {
    const Json* json = member(parameter, "Default");
    if (json == nullptr || json->is_null()) return 0;
    if (json->is_array() && json->size() == 1) json = &(*json)[0];
    const auto wanted = value_of(*json);
    const auto found = wanted ? std::find(values.begin(), values.end(), *wanted) : values.end();
    if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
    problem_.notes.push_back(fmt::format("{}: the default {} is none of its values; {} stands for it", name,
                                         json_line(*json), values[0].literal()));
    return 0;
  }

  Status read_conditions(const Json& space) {
    const Json* conditions = member(space, "Conditions");
    if (conditions == nullptr || conditions->is_null()) return {};
    if (!conditions->is_array())
      return fail(Code::invalid, "{}: ConfigurationSpace.Conditions must be an array", name_);
    for (std::size_t i = 0; i < conditions->size(); ++i) {
      const std::string where = fmt::format("{}: Conditions[{}]", name_, i);
      const Json* text = member((*conditions)[i], "Expression");
      if (text == nullptr || !text->is_string())
        return fail(Code::invalid, "{}: Expression must be a text", where);
      auto expression = Expression::parse(text->get<std::string>());
      if (!expression) return fail(Code::invalid, "{}: {}", where, expression.error().message());
      for (const auto& variable : expression->variables()) {
        if (names_.contains(variable)) continue;
        return fail(Code::invalid, "{}: column {}: '{}' is no parameter{}", where,
                    expression->column_of(variable), variable, did_you_mean(variable, problem_.parameters));
      }
      problem_.lattice.constraints.push_back({std::move(*expression), "", 0});
    }
    return {};
  }

  /// Knobs that the launch's expressions name also act through the launch.
  void mark_launch_knobs() {
    const Json* kernel = member(document_, "KernelSpecification");
    if (kernel == nullptr) return;
    for (const char* key : {"LocalSize", "GlobalSize", "GridDivX", "GridDivY", "GridDivZ"}) {
      const Json* sizes = member(*kernel, key);
      if (sizes == nullptr || !sizes->is_structured()) continue;
      for (const auto& size : *sizes) {
        const auto expression = size.is_string() ? Expression::parse(size.get<std::string>()) : Expression();
        if (!expression) continue;
        for (auto& knob : problem_.lattice.knobs)
          if (expression->column_of(knob.name) > 0 && knob.applies.size() == 1)
            knob.applies.push_back(Applies::launch);
      }
    }
  }

  /// T1's defaults need not satisfy the conditions; base must.
  void repair_base() {
    lattice::Lattice& lattice = problem_.lattice;
    const auto facts = problem_.facts();
    const auto why = lattice.why_invalid(lattice.base(), facts);
    if (why && why->empty()) return;
    const std::string reason = why ? *why : why.error().message();
    const auto space = lattice::Space::build(lattice, facts, kMostNodes);
    if (!space) {
      problem_.notes.push_back(fmt::format("the default point is not valid ({}), and no other was sought: {}",
                                           reason, space.error().message()));
      return;
    }
    if (space->count() == 0) {
      problem_.notes.push_back("no point is valid; the default one is not because " + reason);
      return;
    }
    const Point base = nearest_to_base(*space);
    std::vector<std::string> changes;
    for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
      Knob& knob = lattice.knobs[k];
      if (base.indices[k] == knob.default_index) continue;
      changes.push_back(fmt::format("{} {} instead of {}", knob.name, knob.values[base.indices[k]].literal(),
                                    knob.values[knob.default_index].literal()));
      knob.tags[knob.default_index] = tag_of(knob.name, knob.values[knob.default_index], tags_);
      knob.default_index = base.indices[k];
      tags_.erase(knob.tags[knob.default_index]);
      knob.tags[knob.default_index].clear();
    }
    problem_.notes.push_back(
        fmt::format("the default point is not valid ({}); base has {}", reason, join(changes, ", ")));
  }

  /// The first of the valid points with the fewest changes; of a very large space only its beginning is
  /// looked at.
  Point nearest_to_base(const lattice::Space& space) const {
    const Point base = problem_.lattice.base();
    Point best;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    std::uint64_t looked_at = 0;
    for (auto cursor = space.begin_cursor(); cursor.valid() && looked_at < kMostSearchedPoints;
         cursor.next(), ++looked_at) {
      std::size_t changes = 0;
      for (std::size_t k = 0; k < base.indices.size(); ++k)
        changes += cursor.point().indices[k] != base.indices[k] ? 1 : 0;
      if (changes >= fewest) continue;
      fewest = changes;
      best = cursor.point();
    }
    return best;
  }

  const Json& document_;
  std::string_view name_;
  T1Problem problem_;
  std::set<std::string> names_;
  std::set<std::string> tags_;
};

}  // namespace

lattice::Lookup T1Problem::facts() const {
  return [values = fixed](std::string_view wanted) -> std::optional<Value> {
    for (const auto& [key, value] : values)
      if (key == wanted) return value;
    return std::nullopt;
  };
}

Result<T1Problem> read_t1(std::string_view text, std::string_view name) {
  FURLONG_TRY(const Json document, json_parse(text, name));
  return Reader(document, name).run();
}

}  // namespace furlong::interop
