// Chooses a variant of examples/reduction at run time from a tuning file and runs it: on the first CUDA card,
// or without one as C++ text on the CPU.
//
//   select-cuda PROGRAM.toml TUNING.json [N]
//
// Exit 0: the sum is right; 1: it is wrong or something failed (the message says what); 2: usage.
#include <cstdio>
#include <cstring>
#include <string>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/device/cuda/cuda.h"
#include "furlong/device/host/host.h"
#include "furlong/program/program.h"
#include "furlong/record/tuning.h"
#include "furlong/select/select.h"

namespace {

using namespace furlong;

/// A device after the driver that it came from: members go in the opposite order.
struct Opened {
  std::unique_ptr<device::Driver> driver;
  std::unique_ptr<device::Device> device;
};

Result<Opened> open_card_or_host() {
  Opened opened{device::make_cuda_driver(), nullptr};
  auto card = opened.driver->open(0);
  if (card) {
    opened.device = *std::move(card);
    return opened;
  }
  std::printf("no CUDA card: %s\nrunning on the CPU instead\n", card.error().text().c_str());
  opened.driver = device::make_host_driver();
  FURLONG_TRY(opened.device, opened.driver->open(0));
  return opened;
}

/// Everything that the program's arguments hold on the device.
class Arguments {
 public:
  Arguments(device::Device& device, const Selection& selection, program::RunInputs inputs)
      : device_(device), selection_(selection), inputs_(std::move(inputs)) {}

  Status upload() {
    for (const auto& bytes : inputs_.bytes) {
      const std::size_t i = buffers_.size();
      buffers_.emplace_back();
      if (inputs_.buffer_bytes[i] == 0) continue;  // a scalar
      FURLONG_TRY(buffers_[i], device_.allocate(inputs_.buffer_bytes[i]));
      if (!bytes.empty()) FURLONG_CHECK(buffers_[i]->write(0, bytes));
    }
    return {};
  }

  /// What is timed; launches that make a layout of the inputs run here, once.
  Result<std::vector<device::Launch>> launches(device::Module& module) {
    FURLONG_TRY(const auto plans, selection_.instance.launches(selection_.point, inputs_));
    std::vector<device::Launch> launches;
    for (const program::LaunchPlan& plan : plans) {
      device::Launch launch{.module = &module,
                            .entry = plan.entry,
                            .grid = plan.grid,
                            .block = plan.block,
                            .shared_bytes = plan.shared_bytes,
                            .arguments = {}};
      for (const std::size_t i : plan.arguments) {
        if (buffers_[i]) {
          launch.arguments.emplace_back(device::BufferArgument{buffers_[i].get(), 0});
        } else {
          FURLONG_TRY(Bytes value, selection_.instance.scalar_bytes(plan, i, selection_.point, inputs_));
          launch.arguments.emplace_back(std::move(value));
        }
      }
      if (plan.once) {
        FURLONG_CHECK(device_.launch(launch));
      } else {
        launches.push_back(std::move(launch));
      }
    }
    return launches;
  }

  Result<std::uint32_t> word(std::string_view name) {
    const auto index = selection_.instance.program().argument_index(name);
    if (!index || !buffers_[*index]) return fail(Code::invalid, "the program has no buffer '{}'", name);
    Bytes bytes(4);
    FURLONG_CHECK(buffers_[*index]->read(0, bytes));
    return load_le<std::uint32_t>(bytes.data());
  }

  Result<std::uint32_t> sum_on_cpu(std::string_view name) const {
    const auto index = selection_.instance.program().argument_index(name);
    if (!index) return fail(Code::invalid, "the program has no input '{}'", name);
    const Bytes& bytes = inputs_.bytes[*index];
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
      sum += load_le<std::uint32_t>(bytes.data() + at);
    return sum;
  }

 private:
  device::Device& device_;
  const Selection& selection_;
  program::RunInputs inputs_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
};

Result<std::shared_ptr<device::Module>> compile(device::Device& device, const Selection& selection) {
  FURLONG_TRY(const program::VariantPlan plan, selection.instance.plan(selection.point));
  FURLONG_TRY(const device::Language language, device::parse_language(selection.instance.edition().language));
  return device.compile({.language = language,
                         .name = plan.name,
                         .source = plan.source,
                         .source_name = plan.source_name,
                         .entries = plan.entries,
                         .defines = plan.defines,
                         .options = plan.options,
                         .include_folders = plan.include_folders});
}

Status run(const std::string& program_file, const std::string& tuning_file, std::int64_t n) {
  FURLONG_TRY(const auto program, program::load_program_file(program_file));
  FURLONG_TRY(const std::string text, system_files().read(tuning_file));
  FURLONG_TRY(const record::Tuning tuning, record::parse_tuning(text, tuning_file));
  FURLONG_TRY(const Opened opened, open_card_or_host());
  device::Device& device = *opened.device;
  FURLONG_TRY(const Selection selection,
              select(program, device.facts(), {{"n", n}}, tuning, {.tuning_name = tuning_file}));
  std::printf("%s on %s: %s\n", program->name.c_str(), device.facts().label.c_str(), selection.how.c_str());
  for (const std::string& note : selection.notes) std::printf("note: %s\n", note.c_str());

  FURLONG_TRY(const auto module, compile(device, selection));
  const std::vector<lattice::Point> points = {selection.point};
  FURLONG_TRY(program::RunInputs inputs, selection.instance.timed_inputs(1, points));
  Arguments arguments(device, selection, std::move(inputs));
  FURLONG_CHECK(arguments.upload());
  FURLONG_TRY(const auto launches, arguments.launches(*module));
  FURLONG_TRY(const auto times, device.time({.pipeline = launches, .repeats = 6}));
  FURLONG_TRY(const std::uint32_t got, arguments.word("sum"));
  FURLONG_TRY(const std::uint32_t want, arguments.sum_on_cpu("x"));
  if (got != want) return fail(Code::mismatch, "wrong: the device says {}, the CPU {}", got, want);
  std::printf("right: %u; %.4g GB/s\n", got, 4e-6 * static_cast<double>(n) / times.back());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Result<std::int64_t> n = argc > 3 ? parse_integer(argv[3]) : Result<std::int64_t>(1 << 22);
  if (argc < 3 || argc > 4 || !n || *n < 1) {
    std::fprintf(stderr, "usage: %s PROGRAM.toml TUNING.json [N]\n", argv[0]);
    return 2;
  }
  const Status status = run(argv[1], argv[2], *n);
  if (!status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
  return status ? 0 : 1;
}
