#include "furlong/fleet/agent/schedule.h"

#include <cmath>

#include "furlong/base/hash.h"
#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/base/os/clock.h"

namespace furlong::fleet {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t day_s = 86'400;
constexpr std::string_view seed_label = "furlong epoch seed v1";

/// Also for times before 1970, which a machine without a battery may show.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

Turn ClockSchedule::turn(std::int64_t index) const {
  Hasher hasher;
  hasher.add_field(seed_label).add_field(config_.seed).add_field(std::to_string(index));
  return Turn{.seed = hasher.finish().hex(),
              .day = std::max<std::int64_t>(0, floor_div(index * config_.epoch_s, day_s) - config_.first_day),
              .pack = {}};
}

Due ClockSchedule::due(std::int64_t wall_us) {
  const std::int64_t epoch_us = config_.epoch_s * second_us;
  const std::int64_t index = floor_div(wall_us, epoch_us);
  const std::int64_t left_us = (index + 1) * epoch_us - wall_us;
  Due due{.current = turn(index)};
  due.next_in_s = static_cast<double>(left_us) * 1e-6;
  if (left_us <= config_.lead * second_us) due.next = turn(index + 1);
  return due;
}

Result<ChainLine> parse_chain_line(std::string_view line) {
  constexpr std::string_view where = "schedule line";
  constexpr auto most = static_cast<std::uint64_t>(INT64_MAX);
  FURLONG_TRY(const Json json, json_parse(line, where, {.max_bytes = 64 << 10, .max_depth = 8}));
  JsonObject object(json, std::string(where));
  ChainLine read;
  std::uint64_t day = 0, height = 0, boundary = 0;
  object.text("epoch_seed", read.turn.seed);
  object.integer("day", day, 0, most);
  object.integer("height", height, 0, most);
  object.integer("boundary", boundary, 0, most);
  object.text("pack", read.turn.pack);
  object.require({"epoch_seed", "day", "height", "boundary"});
  FURLONG_CHECK(object.status());
  const auto bytes = from_hex(read.turn.seed);
  if (!bytes || bytes->size() != 32)
    return fail(Code::invalid, "{}.epoch_seed: 64 hexadecimal digits are wanted", where);
  read.turn.seed = to_hex(*bytes);  // in lower case
  read.turn.day = static_cast<std::int64_t>(day);
  read.height = static_cast<std::int64_t>(height);
  read.boundary = static_cast<std::int64_t>(boundary);
  return read;
}

void ChainSchedule::take(const ChainLine& line) {
  const std::scoped_lock lock(mutex_);
  // A turn that was announced comes into force by any line that has reached its boundary.
  if (next_ && line.height >= next_->boundary) {
    current_ = next_->turn;
    next_.reset();
  }
  if (line.height >= line.boundary) {
    current_ = line.turn;
    if (next_ && next_->turn == line.turn) next_.reset();
  } else {
    next_ = line;
  }
  if (next_) next_->height = line.height;
}

Due ChainSchedule::due(std::int64_t) {
  const std::scoped_lock lock(mutex_);
  Due due{.current = current_};
  if (next_ && next_->boundary - next_->height <= lead_units_) due.next = next_->turn;
  return due;
}

JumpWatch::JumpWatch(Clock& clock) : clock_(clock), steady_ns_(clock.now_ns()), wall_us_(clock.wall_us()) {}

double JumpWatch::look(double least_s) {
  const std::int64_t steady_ns = clock_.now_ns();
  const std::int64_t wall_us = clock_.wall_us();
  const double jump_s =
      static_cast<double>(wall_us - wall_us_) * 1e-6 - static_cast<double>(steady_ns - steady_ns_) * 1e-9;
  // From the last look on: slow drift, which time servers correct all the time, never adds up to a jump.
  steady_ns_ = steady_ns;
  wall_us_ = wall_us;
  return std::abs(jump_s) >= least_s ? jump_s : 0;
}

}  // namespace furlong::fleet
