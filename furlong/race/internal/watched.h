#pragma once
// A device that tells whether everything but compiling is done on it by the thread that holds it: for tests.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "furlong/device/device.h"

namespace furlong::race::testing {

/// Who holds the device, and how often it was used by somebody else. Thread safe.
class Watch {
 public:
  void taken() { holder_ = std::this_thread::get_id(); }
  void left() { holder_ = std::thread::id(); }
  void used(const char* how) {
    ++uses_;
    if (holder_.load() == std::this_thread::get_id()) return;
    ++strays_;
    last_stray_ = how;
  }
  int uses() const { return uses_; }
  int strays() const { return strays_; }
  /// The last use by who did not hold it; a literal.
  std::string last_stray() const { return last_stray_.load(); }

 private:
  std::atomic<std::thread::id> holder_{};
  std::atomic<int> uses_{0}, strays_{0};
  std::atomic<const char*> last_stray_{""};
};

class WatchedBuffer final : public device::Buffer {
 public:
  WatchedBuffer(Watch& watch, std::unique_ptr<device::Buffer> inner)
      : watch_(watch), inner_(std::move(inner)) {}
  ~WatchedBuffer() override { watch_.used("a buffer was freed"); }
  WatchedBuffer(const WatchedBuffer&) = delete;
  WatchedBuffer& operator=(const WatchedBuffer&) = delete;
  std::size_t size() const override { return inner_->size(); }
  Status write(std::size_t offset, ByteView bytes) override {
    watch_.used("a buffer was written");
    return inner_->write(offset, bytes);
  }
  Status read(std::size_t offset, std::span<std::uint8_t> into) override {
    watch_.used("a buffer was read");
    return inner_->read(offset, into);
  }
  Status fill(std::uint8_t byte, std::size_t offset, std::size_t count) override {
    watch_.used("a buffer was filled");
    return inner_->fill(byte, offset, count);
  }
  device::Buffer& inner() { return *inner_; }

 private:
  Watch& watch_;
  std::unique_ptr<device::Buffer> inner_;
};

/// `inner` and `watch` outlive it.
class Watched final : public device::Device {
 public:
  Watched(device::Device& inner, Watch& watch) : inner_(inner), watch_(watch) {}
  const device::Facts& facts() const override { return inner_.facts(); }
  Result<std::shared_ptr<device::Module>> compile(const device::CompileRequest& request,
                                                  std::stop_token stop) override {
    FURLONG_TRY(auto module, inner_.compile(request, stop));
    device::Module* const raw = module.get();
    ++modules_;
    return std::shared_ptr<device::Module>(raw, [this, module = std::move(module)](device::Module*) mutable {
      watch_.used("a module was unloaded");
      --modules_;
      module.reset();
    });
  }
  Result<std::unique_ptr<device::Buffer>> allocate(std::size_t bytes) override {
    watch_.used("a buffer was allocated");
    FURLONG_TRY(auto buffer, inner_.allocate(bytes));
    return std::make_unique<WatchedBuffer>(watch_, std::move(buffer));
  }
  Status launch(const device::Launch& launch) override {
    watch_.used("launch");
    return inner_.launch(inside(launch));
  }
  Status finish() override {
    watch_.used("finish");
    if (finish_fails) return fail(Code::internal, "a launch failed");
    return inner_.finish();
  }
  Result<std::vector<double>> time(const device::TimeRequest& request) override {
    watch_.used("time");
    std::vector<device::Launch> pipeline;
    for (const device::Launch& launch : request.pipeline) pipeline.push_back(inside(launch));
    device::TimeRequest asked = request;
    asked.pipeline = pipeline;
    if (asked.flush != nullptr) asked.flush = &dynamic_cast<WatchedBuffer&>(*asked.flush).inner();
    return inner_.time(asked);
  }
  device::MemoryInUse memory() const override { return inner_.memory(); }
  void set_memory_limit(std::uint64_t bytes) override { inner_.set_memory_limit(bytes); }
  device::Telemetry telemetry() override {
    watch_.used("telemetry");
    return inner_.telemetry();
  }
  std::optional<double> occupancy(const device::Launch& launch) override {
    watch_.used("occupancy");
    return inner_.occupancy(inside(launch));
  }
  int compile_threads() const override { return inner_.compile_threads(); }
  /// Not unloaded yet.
  int modules() const { return modules_; }

  std::atomic<bool> finish_fails{false};

 private:
  static device::Launch inside(device::Launch launch) {
    for (device::Argument& argument : launch.arguments)
      if (auto* buffer = std::get_if<device::BufferArgument>(&argument))
        buffer->buffer = &dynamic_cast<WatchedBuffer&>(*buffer->buffer).inner();
    return launch;
  }

  device::Device& inner_;
  Watch& watch_;
  std::atomic<int> modules_{0};
};

}  // namespace furlong::race::testing
