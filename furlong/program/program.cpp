#include "furlong/program/program.h"

#include <algorithm>
#include <array>

#include "furlong/base/text.h"
#include "furlong/program/internal/emit.h"

namespace furlong::program {
namespace {

struct Element {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};
// In the order of ElementType.
constexpr std::array<Element, 11> kElements = {{{"i8", 1, false},
                                                {"u8", 1, false},
                                                {"i16", 2, false},
                                                {"u16", 2, false},
                                                {"i32", 4, false},
                                                {"u32", 4, false},
                                                {"i64", 8, false},
                                                {"u64", 8, false},
                                                {"f16", 2, true},
                                                {"f32", 4, true},
                                                {"f64", 8, true}}};

const Element& element(ElementType type) { return kElements[static_cast<std::size_t>(type)]; }

void add_number(Hasher& hasher, std::uint64_t number) { hasher.add_field(fmt::format("{}", number)); }
void add_expression(Hasher& hasher, const lattice::Expression& e) { hasher.add_field(e.text()); }
void add_text(Hasher& hasher, std::string_view text) { hasher.add_field(text); }

// Every list is preceded by its length, so that what follows cannot be taken for a part of it.
void add_argument(Hasher& hasher, const ArgumentSpec& argument) {
  add_text(hasher, argument.name);
  add_number(hasher, static_cast<std::uint64_t>(argument.kind));
  add_text(hasher, element_name(argument.type));
  add_expression(hasher, argument.count);
  add_number(hasher, static_cast<std::uint64_t>(argument.fill));
  add_expression(hasher, argument.value);
  add_text(hasher, fmt::format("{} {} {}", argument.low, argument.high, argument.seed));
  add_number(hasher, static_cast<std::uint64_t>(argument.direction));
  add_text(hasher, argument.data == nullptr ? std::string() : blake2b_256(argument.data->bytes).hex());
}

void add_lattice(Hasher& hasher, const lattice::Lattice& lattice) {
  add_number(hasher, lattice.knobs.size());
  for (const lattice::Knob& knob : lattice.knobs) {
    add_text(hasher, knob.name);
    add_number(hasher, knob.values.size());
    for (const auto& value : knob.values) add_text(hasher, value.text());
    for (const auto& tag : knob.tags) add_text(hasher, tag);
    add_number(hasher, knob.default_index);
    add_number(hasher, knob.applies.size());
    for (const auto how : knob.applies) add_number(hasher, static_cast<std::uint64_t>(how));
    add_text(hasher, knob.requires_text);
    add_number(hasher, knob.options.size());
    for (const auto& [index, option] : knob.options) add_text(hasher, fmt::format("{} {}", index, option));
  }
  add_number(hasher, lattice.constraints.size());
  for (const auto& constraint : lattice.constraints) add_expression(hasher, constraint.expression);
}

void add_kernel(Hasher& hasher, const KernelSpec& kernel) {
  add_text(hasher, kernel.entry);
  for (const auto& dimension : kernel.grid) add_expression(hasher, dimension);
  for (const auto& dimension : kernel.block) add_expression(hasher, dimension);
  add_expression(hasher, kernel.shared_bytes);
  add_number(hasher, kernel.arguments.size());
  for (const std::size_t argument : kernel.arguments) add_number(hasher, argument);
}

void add_edition(Hasher& hasher, const Edition& edition) {
  add_text(hasher, edition.language);
  add_text(hasher, edition.source);
  add_number(hasher, edition.headers.size());
  for (const Header& header : edition.headers) add_text(hasher, header.text);
  add_number(hasher, edition.kernels.size());
  for (const KernelSpec& kernel : edition.kernels) add_kernel(hasher, kernel);
  add_number(hasher, edition.defines.size());
  for (const auto& [name, value] : edition.defines) add_text(hasher, name + "=" + value);
  add_number(hasher, edition.options.size());
  for (const std::string& option : edition.options) add_text(hasher, option);
  add_lattice(hasher, edition.lattice);
  add_number(hasher, edition.rewrites.size());
  for (const auto& [key, list] : edition.rewrites) {
    add_text(hasher, fmt::format("{} {} {}", key.first, key.second, list.size()));
    for (const Rewrite& rewrite : list) {
      add_text(hasher, rewrite.anchor);
      add_text(hasher, rewrite.replacement);
      add_number(hasher, static_cast<std::uint64_t>(rewrite.expected));
    }
  }
  add_number(hasher, edition.define_names.size());
  for (const auto& [knob, name] : edition.define_names) add_text(hasher, fmt::format("{} {}", knob, name));
}

void add_emitted(Hasher& hasher, const Emitted& emitted) {
  add_text(hasher, emitted.source);
  add_number(hasher, emitted.options.size());
  for (const std::string& option : emitted.options) add_text(hasher, option);
  add_number(hasher, emitted.launches.size());
  for (const EmittedLaunch& launch : emitted.launches) {
    add_text(hasher, launch.entry);
    for (const std::uint64_t size : launch.grid) add_number(hasher, size);
    for (const std::uint64_t size : launch.block) add_number(hasher, size);
    add_number(hasher, launch.shared_bytes);
    add_number(hasher, launch.once ? 1 : 0);
    add_number(hasher, launch.arguments.size());
    for (const std::string& argument : launch.arguments) add_text(hasher, argument);
    add_number(hasher, launch.scalars.size());
    for (const auto& [name, value] : launch.scalars) add_text(hasher, name + "=" + value.text());
  }
}

// An emitter states no version: a changed one is told by what it makes of base, of every single change of a
// knob and of the catalogue, for cards of several generations. Points that cannot be emitted count by their
// error.
void add_emitter(Hasher& hasher, const Program& program, const Edition& edition) {
  add_text(hasher, edition.emitter->name());
  const lattice::Environment problem(program.problem.begin(), program.problem.end());
  std::vector<lattice::Point> points{edition.lattice.base()};
  for (std::size_t k = 0; k < edition.lattice.knobs.size(); ++k) {
    lattice::Point point = edition.lattice.base();
    for (std::size_t i = 0; i < edition.lattice.knobs[k].values.size(); ++i) {
      if (i == edition.lattice.base().indices[k]) continue;
      point.indices[k] = static_cast<std::uint32_t>(i);
      points.push_back(point);
    }
  }
  if (const auto catalogue = lattice::catalogue_points(edition.lattice))
    points.insert(points.end(), catalogue->begin(), catalogue->end());
  for (const int sm : {75, 86, 90, 100}) {
    lattice::Environment facts = assumed_facts(edition.language);
    if (edition.language == "cuda") {
      facts["device.sm"] = sm;
      facts["device.arch"] = fmt::format("sm_{}", sm);
    }
    for (const lattice::Point& point : points) {
      const auto emitted = internal::emit(program, edition, point, problem, facts);
      if (emitted)
        add_emitted(hasher, *emitted);
      else
        add_text(hasher, emitted.error().text());
    }
    if (edition.language != "cuda") break;  // other languages' facts do not tell generations apart
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) { return element(type).bytes; }
std::string_view element_name(ElementType type) { return element(type).name; }
bool is_floating(ElementType type) { return element(type).floating; }

Result<ElementType> parse_element(std::string_view name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kElements.size(); ++i) {
    if (kElements[i].name == name) return static_cast<ElementType>(i);
    names.emplace_back(kElements[i].name);
  }
  return fail(Code::invalid, "'{}' is no element type ({}){}", name, join(names, ", "),
              did_you_mean(name, names));
}

const Edition* Program::edition(std::string_view language) const {
  const auto found = std::find_if(editions.begin(), editions.end(),
                                  [&](const Edition& e) { return e.language == language; });
  return found == editions.end() ? nullptr : &*found;
}

std::optional<std::size_t> Program::argument_index(std::string_view wanted) const {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const ArgumentSpec& argument) { return argument.name == wanted; });
  if (found == arguments.end()) return std::nullopt;
  return static_cast<std::size_t>(found - arguments.begin());
}

Digest Program::source_hash() const {
  Hasher hasher;
  hasher.add_field("furlong program 1");
  add_number(hasher, problem.size());
  for (const auto& [parameter, value] : problem) add_text(hasher, parameter + "=" + value.text());
  add_number(hasher, lets.size());
  for (const auto& [let, expression] : lets) add_text(hasher, let + "=" + expression.text());
  add_number(hasher, arguments.size());
  for (const ArgumentSpec& argument : arguments) add_argument(hasher, argument);
  add_number(hasher, editions.size());
  for (const Edition& edition : editions) {
    add_edition(hasher, edition);
    if (edition.emitter != nullptr) add_emitter(hasher, *this, edition);
  }
  return hasher.finish();
}

Status Recipe::build_dataset(std::span<std::uint8_t>, int, std::stop_token) const {
  return fail(Code::internal, "recipe '{}' builds no dataset", name());
}

Status Recipe::fill(std::string_view argument, const lattice::Environment&, std::uint64_t,
                    std::span<std::uint8_t>) const {
  return fail(Code::invalid, "recipe '{}' does not fill argument '{}'", name(), argument);
}

}  // namespace furlong::program
