#pragma once
// An emitter and a program of it for tests: y[i] = 3 x[i] + i, in parts that each are a launch with bounds of
// its own, from the input as it lies or from a copy, as it is or turned round, that is made once.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/program/emitter.h"

namespace furlong::program::testing {

class ScaleRecipe : public Recipe {
 public:
  std::string name() const override { return "scale"; }
  std::uint64_t dataset_bytes() const override { return 0; }
  Status build_dataset(std::span<std::uint8_t>, int, std::stop_token) const override { return {}; }
  Status reference(const Program&, const lattice::Environment&, const std::vector<Bytes>& inputs,
                   std::vector<Bytes>& expected) const override {
    for (std::uint32_t i = 0; i < expected[1].size() / 4; ++i)
      store_le<std::uint32_t>(expected[1].data() + 4 * i,
                              3 * load_le<std::uint32_t>(inputs[0].data() + 4 * i) + i);
    return {};
  }
};

/// `change` may spoil what it makes; it gets the problem's n.
class ScaleEmitter : public Emitter {
 public:
  explicit ScaleEmitter(std::function<void(Emitted&, std::int64_t n)> change = {})
      : change_(std::move(change)) {}
  std::string_view name() const override { return "test.scale"; }
  std::string_view language() const override { return "host"; }
  std::span<const std::string> knobs() const override {
    static const std::vector<std::string> names = {"layout", "parts"};
    return names;
  }
  std::span<const std::string> problem() const override {
    static const std::vector<std::string> names = {"n"};
    return names;
  }
  std::shared_ptr<const Recipe> recipe() const override { return std::make_shared<ScaleRecipe>(); }

  Result<Emitted> emit(const EmitNames& names) const override {
    FURLONG_TRY(const std::int64_t n, lattice::to_integer(names("n").value_or(0), "n"));
    if (n < 1) return fail(Code::invalid, "test.scale: n is {}; it must be at least 1", n);
    const std::string layout = names("layout").value_or("plain").text();
    const bool kept = layout != "plain";
    const std::string_view from = layout == "turned" ? "n - 1 - i" : "i";
    FURLONG_TRY(std::int64_t parts, lattice::to_integer(names("parts").value_or(1), "parts"));
    Emitted emitted;
    if (parts > n) {
      emitted.notes.push_back(fmt::format("parts {} is {}: there are no more elements", parts, n));
      emitted.fallback = true;
      parts = n;
    }
    emitted.options = {"-fno-strict-aliasing"};
    emitted.source =
        "extern \"C\" void scale(const furlong_block&, const uint32_t* x, uint32_t* y, uint32_t n, uint32_t "
        "from, "
        "uint32_t to) {\n";
    emitted.source += fmt::format("  for (uint32_t i = from; i < to; ++i) y[i] = 3 * x[{}] + i;\n}}\n", from);
    for (std::int64_t part = 0; part < parts; ++part) {
      EmittedLaunch launch;
      launch.entry = "scale";
      launch.arguments = {kept ? "kept" : "x", "y", "n", "from", "to"};
      launch.scalars = {{"from", part * n / parts}, {"to", (part + 1) * n / parts}};
      emitted.launches.push_back(std::move(launch));
    }
    if (kept) {
      emitted.source += fmt::format(
          "extern \"C\" void keep(const furlong_block&, const uint32_t* x, uint32_t* kept, uint32_t n) {{\n"
          "  for (uint32_t i = 0; i < n; ++i) kept[i] = x[{}];\n}}\n",
          from);
      EmittedLaunch launch;  // last, though it runs first
      launch.entry = "keep";
      launch.arguments = {"x", "kept", "n"};
      launch.once = true;
      emitted.launches.push_back(std::move(launch));
    }
    if (change_) change_(emitted, n);
    return emitted;
  }

 private:
  std::function<void(Emitted&, std::int64_t)> change_;
};

inline constexpr std::string_view kEmitted = R"toml(format = 1
[program]
name = "scale"
language = "host"
emitter = "test.scale"
[problem]
n = 4096
[[argument]]
name = "x"
type = "u32"
size = "n"
[[argument]]
name = "y"
type = "u32"
size = "n"
direction = "out"
[[argument]]
name = "kept"
type = "u32"
size = "n"
direction = "scratch"
[[argument]]
name = "n"
kind = "scalar"
type = "u32"
value = "n"
[[argument]]
name = "from"
kind = "scalar"
type = "u32"
value = 0
[[argument]]
name = "to"
kind = "scalar"
type = "u32"
value = 0
[check]
reference = "recipe"
problem = { n = "min(n, 512 + n % 512)" }
[work]
unit = "element"
amount = "n"
bytes = "8 * n"
[[knob]]
name = "layout"
values = ["plain", "turned", "copied"]
applies = "emit"
wins = "the copy is read in the order of the memory"
loses = "the copy takes room"
[[knob]]
name = "parts"
values = [1, 2, 3]
applies = "emit"
wins = "parts run side by side"
loses = "each is a launch"
)toml";

inline Result<std::shared_ptr<const Program>> read_emitted(
    std::string_view text = kEmitted,
    std::shared_ptr<const Emitter> emitter = std::make_shared<ScaleEmitter>()) {
  FakeFiles files;
  const std::vector<std::shared_ptr<const Emitter>> emitters = {std::move(emitter)};
  return parse_program(text, "scale.toml", "/nowhere", files, emitters);
}

/// kEmitted with one piece replaced; the piece must be there.
inline std::string emitted_with(std::string_view from, std::string_view to) {
  std::string text(kEmitted);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "the text to change is not in kEmitted";
  return text.replace(at, from.size(), to);
}

}  // namespace furlong::program::testing
