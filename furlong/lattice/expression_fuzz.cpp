// Any bytes as an expression: parsing and evaluating answer with a value or an `invalid` error that names a
// column inside the text; and a constraint made of it enumerates exactly as checking every point does.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/lattice/internal/testing.h"
#include "furlong/lattice/space.h"

using furlong::Code;
using namespace furlong::lattice;

namespace {

void require(bool held) {
  if (!held) std::abort();
}

void check_enumeration(const Expression& expression) {
  Lattice lattice;
  lattice.knobs = {make_knob("a", {1, 2, 7}), make_knob("b", {-3, 0, 4}),
                   make_knob("w", {"int4", "char4", 2})};
  lattice.constraints = {{expression, "", 0}};
  const auto facts =
      make_facts({{"half", Value(0.5)}, {"big", Value(std::int64_t{1} << 62)}, {"t", Value(true)}});
  for (const auto& name : expression.variables())
    if (lattice.knob(name) == nullptr && !facts(name)) return;
  std::uint64_t valid = 0;
  bool error = false;
  const auto space = Space::build(lattice, facts);
  for (const auto& point : whole_product(lattice)) {
    const auto holds = lattice.satisfies(point, facts);
    error = error || !holds;
    if (!space || !holds) continue;
    require(*holds == space->index_of(point).has_value());
    valid += *holds ? 1 : 0;
  }
  require(space.has_value() == !error);
  if (space) require(space->count() == valid);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = furlong::as_text({data, size});
  const auto parsed = Expression::parse(text);
  if (!parsed) {
    require(parsed.error().code() == Code::invalid);
    require(parsed.error().message().starts_with("column "));
    const int column = std::atoi(parsed.error().message().c_str() + 7);
    require(column >= 1 && static_cast<std::size_t>(column) <= size + 1);
    return 0;
  }
  for (const auto& name : parsed->variables()) require(parsed->column_of(name) >= 1);
  const auto value = parsed->evaluate(Environment{{"a", Value(7)}, {"b", Value(-3)}, {"w", Value("int4")}});
  if (!value) require(value.error().code() == Code::invalid);
  check_enumeration(*parsed);
  return 0;
}
