#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "bench/card/sections.h"
#include "furlong/base/json.h"
#include "furlong/base/text.h"
#include "furlong/race/internal/entrant.h"

namespace furlong::bench {
namespace {

using program::ArgumentKind;

/// Launches variants of one program on the inputs of its check, each in buffers of exactly the size that the
/// kernels may use: what lies beyond is nobody's, so that a checker of memory sees every step over the edge.
class Launcher {
 public:
  Launcher(Stage& stage, const program::Instance& instance, std::vector<lattice::Point> points)
      : stage_(stage), instance_(instance), points_(std::move(points)) {}

  /// Returns how many variants ran; those that do not fit the check's problem are not counted.
  Result<int> run() {
    compile();
    FURLONG_TRY(inputs_, instance_.check_inputs(1, points_));
    FURLONG_CHECK(allocate());
    int ran = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::string name = lattice::variant_name(instance_.lattice(), points_[i]);
      if (!modules_[i]->has_value()) return Error(modules_[i]->error()).with(name);
      FURLONG_CHECK_DOING(launch(points_[i], *modules_[i]->value()), "{} of {}", name,
                          instance_.program().name);
      ++ran;
    }
    return ran;
  }

 private:
  using Built = Result<std::shared_ptr<device::Module>>;

  void compile() {
    modules_.resize(points_.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < points_.size(); i = next++) modules_[i] = compile_one(points_[i]);
    };
    std::vector<std::jthread> crew;
    const int threads = stage_.device().compile_threads();
    for (int t = 0; t < std::max(1, threads); ++t) crew.emplace_back(work);
  }

  Built compile_one(const lattice::Point& point) {
    FURLONG_TRY(const program::VariantPlan plan, instance_.plan(point));
    const lattice::Point alone[] = {point};
    FURLONG_TRY(const auto inputs, instance_.check_inputs(1, alone));
    FURLONG_TRY(const auto launches, instance_.launches(point, inputs));
    return stage_.device().compile(race::compile_request(instance_, plan, race::most_shared_bytes(launches)));
  }

  Status allocate() {
    const auto& arguments = instance_.program().arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      buffers_.emplace_back();
      if (arguments[i].kind == ArgumentKind::scalar) continue;
      const std::size_t size = inputs_.buffer_bytes[i];
      FURLONG_TRY(buffers_[i], stage_.device().allocate(size));
      if (arguments[i].kind == ArgumentKind::dataset) {
        Bytes dataset(instance_.program().recipe->dataset_bytes());
        FURLONG_CHECK(instance_.program().recipe->build_dataset(dataset, 2, {}));
        FURLONG_CHECK(buffers_[i]->write(0, dataset));
      }
    }
    return {};
  }

  Status launch(const lattice::Point& point, device::Module& module) {
    const auto& arguments = instance_.program().arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!buffers_[i] || arguments[i].kind == ArgumentKind::dataset) continue;
      if (inputs_.bytes[i].empty()) {
        FURLONG_CHECK(buffers_[i]->fill(0xA5, 0, buffers_[i]->size()));
      } else {
        FURLONG_CHECK(buffers_[i]->write(0, inputs_.bytes[i]));
      }
    }
    FURLONG_TRY(
        const race::Pipeline pipeline,
        race::make_launches(
            instance_, point, module,
            [this](std::size_t argument) { return device::BufferArgument{buffers_[argument].get(), 0}; },
            inputs_));
    FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.once));
    FURLONG_CHECK(race::launch_all(stage_.device(), pipeline.launches));
    FURLONG_CHECK(stage_.device().finish());
    return compare(point);
  }

  /// Against the outputs that are known; others only ran.
  Status compare(const lattice::Point& point) {
    const auto& arguments = instance_.program().arguments;
    FURLONG_TRY(const program::CheckSpec check, instance_.check(point));
    for (std::size_t i = 0; i < arguments.size() && i < inputs_.expected.size(); ++i) {
      if (inputs_.expected[i].empty() || !buffers_[i]) continue;
      Bytes got(inputs_.expected[i].size());
      FURLONG_CHECK(buffers_[i]->read(0, got));
      FURLONG_CHECK(compare_output(check, arguments[i], got, inputs_.expected[i]));
    }
    return {};
  }

  Stage& stage_;
  const program::Instance& instance_;
  std::vector<lattice::Point> points_;
  program::RunInputs inputs_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
  std::vector<std::optional<Built>> modules_;
};

}  // namespace

Result<int> launch_points(Stage& stage, const program::Instance& instance,
                          std::vector<lattice::Point> points) {
  Launcher launcher(stage, instance, std::move(points));
  return launcher.run();
}

namespace {

Status launch_program(Bench& bench, Stage& stage, const program::Instance& instance,
                      std::string_view variants, const std::string& name, int& all) {
  FURLONG_TRY(auto points, instance.select(variants));
  auto ran = launch_points(stage, instance, std::move(points));
  if (!ran) return std::move(ran).error().with(name);
  bench.row({name, {{"variants", *ran}}, "launched once"});
  say(fmt::format("{}: {} variants", name, *ran));
  all += *ran;
  return {};
}

}  // namespace

Status launch_all(Bench& bench, Stage& stage) {
  int all = 0;
  FURLONG_TRY(const auto classes, list_option(bench, "classes"));
  for (const std::string& text : classes) {
    const auto parts = split(text, '/');
    if (parts.size() != 2) return fail(Code::invalid, "--classes takes LOADS/WIDE,…, not '{}'", text);
    FURLONG_TRY(const std::int64_t loads, parse_integer(parts[0]));
    FURLONG_TRY(const std::int64_t wide, parse_integer(parts[1]));
    FURLONG_TRY(const auto instance, stage.lottery(1, loads, wide, 0));
    FURLONG_CHECK(launch_program(bench, stage, instance, bench.option("variants"), "lottery " + text, all));
  }
  FURLONG_TRY(const auto programs, list_option(bench, "programs"));
  for (const std::string& path : programs) {
    auto instance = stage.file(path);
    if (!instance) {  // one that is not written in a language of this device
      bench.row({path + ": " + instance.error().text(), {{"variants", 0}}, "launched once"});
      say(fmt::format("{}: {}", path, instance.error().text()));
      continue;
    }
    FURLONG_CHECK(launch_program(bench, stage, *instance, "catalogue", path, all));
  }
  bench.metric("variants_launched", all, Better::higher);
  bench.at_least("variants launched", all, 1);
  return {};
}

}  // namespace furlong::bench
