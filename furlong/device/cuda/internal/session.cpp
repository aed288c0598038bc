#include "furlong/device/cuda/internal/session.h"

#include <algorithm>
#include <cstring>

#include "furlong/base/text.h"

namespace furlong::device::cuda {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{8} << 20;
constexpr std::size_t kUnstagedBytes = 64 << 10;  // under it the driver's own copy is as fast
constexpr std::uint64_t kPoolBytes = std::uint64_t{1} << 30;
constexpr std::size_t kGranule = 512;

std::size_t rounded(std::size_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

}  // namespace

Session::Session(const Api& api, Card card, std::string address)
    : api_(api), card_(card), address_(std::move(address)) {
  const auto side = [&](int which) { return static_cast<std::uint64_t>(api.attribute(card, which, 1)); };
  limits_.threads_per_block = api.attribute(card, kAttributeMaxThreadsPerBlock, 1);
  for (int axis = 0; axis < 3; ++axis) {
    limits_.block[axis] = side(kAttributeMaxBlockX + axis);
    limits_.grid[axis] = side(kAttributeMaxGridX + axis);
  }
  limits_.shared_bytes = side(kAttributeSharedPerBlock);
  limits_.shared_bytes_at_most = std::max(limits_.shared_bytes, side(kAttributeSharedPerBlockOptin));
  limits_.registers_per_block = api.attribute(card, kAttributeRegistersPerBlock, 0);
  limits_.threads_per_multiprocessor = api.attribute(card, kAttributeThreadsPerMultiprocessor, 0);
  std::size_t total = 0;
  if (api.card_memory(&total, card) == kSuccess) total_bytes_ = total;
  limits_.warp = api.attribute(card, kAttributeWarpSize, 32);
}

Result<std::shared_ptr<Session>> Session::open(const Api& api, Card card, std::string address) {
  std::shared_ptr<Session> session(new Session(api, card, std::move(address)));
  FURLONG_CHECK(session->set_up());
  return session;
}

Status Session::set_up() {
  // Waiting threads sleep: a spinning one would be descheduled in the middle of a heat on a busy host.
  if (const Status32 code = api_.create_context(&context_, kContextBlockingSync, card_); code != kSuccess) {
    context_ = nullptr;
    return error_of(api_, code, fmt::format("opening {}", address_));
  }
  FURLONG_CHECK(enter());
  if (const Status32 code = api_.create_stream(&stream_, kStreamNonBlocking); code != kSuccess) {
    stream_ = nullptr;
    return failed(code, fmt::format("opening {}", address_));
  }
  return {};
}

Session::~Session() {
  if (context_ == nullptr) return;
  // After a fault the driver refuses all but destroying the context.
  if (api_.set_context(context_) == kSuccess) {
    if (stream_ != nullptr) (void)api_.wait_stream(stream_);
    for (Staging& piece : staging_) {
      if (piece.done != nullptr) (void)api_.destroy_event(piece.done);
      if (piece.bytes != nullptr) (void)api_.free_pinned(piece.bytes);
    }
    for (Event event : events_) (void)api_.destroy_event(event);
    for (const auto& [bytes, address] : pool_) (void)api_.free(address);
    if (stream_ != nullptr) (void)api_.destroy_stream(stream_);
  }
  (void)api_.destroy_context(context_);
}

Status Session::enter() {
  if (const Status32 by = lost_by_; by != kSuccess) {
    return fail(blames_kernel(by) ? Code::unavailable : Code::denied,
                "the context of {} is lost ({}): go on in a new process", address_, api_.name_of(by));
  }
  const Status32 code = api_.set_context(context_);
  return code == kSuccess ? Status() : Status(failed(code, fmt::format("using {}", address_)));
}

Error Session::failed(Status32 code, std::string_view doing) {
  Status32 none = kSuccess;
  if (loses_context(code)) lost_by_.compare_exchange_strong(none, code);
  const Error error = error_of(api_, code, doing);
  const bool told = error.code() == Code::exhausted || error.code() == Code::incompatible;
  return blames_kernel(code) || told ? error : Error(Code::denied, error.message());
}

std::uint64_t Session::trim_pool() {
  std::uint64_t freed = 0;
  for (const auto& [bytes, address] : pool_) {
    if (api_.free(address) == kSuccess) freed += bytes;
  }
  pool_.clear();
  pooled_ = 0;
  return freed;
}

Error Session::no_memory(std::size_t asked, std::string_view why) const {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  (void)api_.memory_info(&free_bytes, &total_bytes);
  const std::uint64_t limit = limit_;
  std::uint64_t available = free_bytes + pooled_;
  if (limit != 0) available = std::min(available, limit - std::min<std::uint64_t>(limit, used_));
  return fail(Code::exhausted, "asked for {} ({} bytes), {} ({} bytes) of {} available on {}{}",
              human_bytes(asked), asked, human_bytes(available), available, human_bytes(total_bytes),
              address_, why);
}

Result<Address> Session::take(std::size_t bytes) {
  FURLONG_CHECK(enter());
  const std::lock_guard lock(pool_mutex_);
  const std::uint64_t limit = limit_;
  if (limit != 0 && (bytes > limit || used_ > limit - bytes)) {
    return no_memory(bytes, " under the limit that was set for this process");
  }
  if (bytes > total_bytes_) return no_memory(bytes, "");
  const std::size_t whole = rounded(bytes);
  if (const auto kept = pool_.find(whole); kept != pool_.end()) {
    const Address address = kept->second;
    pool_.erase(kept);
    pooled_ -= whole;
    used_ += bytes;
    return address;
  }
  if (limit != 0 && used_ + pooled_ > limit - bytes) trim_pool();  // what is kept counts too
  Address address = 0;
  Status32 code = api_.allocate(&address, whole);
  if (code == kOutOfMemory && trim_pool() > 0) code = api_.allocate(&address, whole);
  if (code == kOutOfMemory)
    return no_memory(bytes, ": end who else uses the card (nvidia-smi lists them), or take a smaller size");
  if (code != kSuccess) return failed(code, fmt::format("allocating {} on {}", human_bytes(bytes), address_));
  used_ += bytes;
  return address;
}

void Session::give(Address address, std::size_t bytes) {
  const std::size_t whole = rounded(bytes);
  const std::lock_guard lock(pool_mutex_);
  used_ -= bytes;
  if (lost() || api_.set_context(context_) != kSuccess) return;  // it goes with the context
  if (pooled_ + whole <= kPoolBytes) {
    pool_.emplace(whole, address);
    pooled_ += whole;
  } else {
    (void)api_.free(address);
  }
}

bool Session::make_staging() {
  for (Staging& piece : staging_) {
    if (piece.bytes == nullptr && api_.allocate_pinned(&piece.bytes, kStagingBytes, 0) != kSuccess)
      piece.bytes = nullptr;
    if (piece.done == nullptr && api_.create_event(&piece.done, 0) != kSuccess) piece.done = nullptr;
    if (piece.bytes == nullptr || piece.done == nullptr) return false;
  }
  return true;
}

Status Session::write(Address to, ByteView from) {
  FURLONG_CHECK(enter());
  const auto copied = [&](Status32 code) {
    return code == kSuccess ? Status() : Status(failed(code, "writing a buffer"));
  };
  // Where no host memory can be pinned the driver's own copy does it, more slowly.
  if (from.size() <= kUnstagedBytes || !make_staging()) {
    FURLONG_CHECK(copied(api_.copy_to_card(to, from.data(), from.size(), stream_)));
    return finish("writing a buffer");
  }
  for (std::size_t done = 0, turn = 0; done < from.size(); ++turn) {
    Staging& piece = staging_[turn % 2];
    const std::size_t count = std::min(kStagingBytes, from.size() - done);
    if (piece.busy) FURLONG_CHECK(copied(api_.wait_event(piece.done)));
    std::memcpy(piece.bytes, from.data() + done, count);
    FURLONG_CHECK(copied(api_.copy_to_card(to + done, piece.bytes, count, stream_)));
    FURLONG_CHECK(copied(api_.record_event(piece.done, stream_)));
    piece.busy = true;
    done += count;
  }
  staging_[0].busy = staging_[1].busy = false;
  return finish("writing a buffer");
}

Status Session::read(Address from, std::span<std::uint8_t> into) {
  FURLONG_CHECK(enter());
  const auto copied = [&](Status32 code) {
    return code == kSuccess ? Status() : Status(failed(code, "reading a buffer"));
  };
  if (into.size() <= kUnstagedBytes || !make_staging()) {
    FURLONG_CHECK(copied(api_.copy_to_host(into.data(), from, into.size(), stream_)));
    return finish("reading a buffer");
  }
  // One piece is copied out while the next is on its way: piece p goes through staging_[p % 2].
  const std::size_t pieces = (into.size() + kStagingBytes - 1) / kStagingBytes;
  const auto bytes_of = [&](std::size_t piece) {
    return std::min(kStagingBytes, into.size() - piece * kStagingBytes);
  };
  const auto ask = [&](std::size_t piece) -> Status {
    const Staging& staging = staging_[piece % 2];
    FURLONG_CHECK(
        copied(api_.copy_to_host(staging.bytes, from + piece * kStagingBytes, bytes_of(piece), stream_)));
    return copied(api_.record_event(staging.done, stream_));
  };
  FURLONG_CHECK(ask(0));
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    if (piece + 1 < pieces) FURLONG_CHECK(ask(piece + 1));
    FURLONG_CHECK(copied(api_.wait_event(staging_[piece % 2].done)));
    std::memcpy(into.data() + piece * kStagingBytes, staging_[piece % 2].bytes, bytes_of(piece));
  }
  return {};
}

Status Session::fill(Address at, std::uint8_t byte, std::size_t count) {
  if (count == 0) return {};
  const Status32 code = api_.fill_bytes(at, byte, count, stream_);
  return code == kSuccess ? Status() : Status(failed(code, "filling a buffer"));
}

Status Session::finish(std::string_view doing) {
  const Status32 code = api_.wait_stream(stream_);
  return code == kSuccess ? Status() : Status(failed(code, doing));
}

Result<std::vector<Event>*> Session::events(std::size_t count) {
  while (events_.size() < count) {
    Event event = nullptr;
    if (const Status32 code = api_.create_event(&event, 0); code != kSuccess)
      return failed(code, "making an event");
    events_.push_back(event);
  }
  return &events_;
}

}  // namespace furlong::device::cuda
