#include "furlong/race/internal/gate.h"

#include <algorithm>

#include "furlong/race/internal/hold.h"

namespace furlong::race {
namespace {

using program::ArgumentKind;
using program::Direction;
using program::ReferenceKind;

constexpr std::size_t kMostRounds = 128;
constexpr std::size_t kMostBytes = 256 << 20;  // of fresh inputs, all rounds together

std::uint64_t round_seed(std::uint64_t seed, std::size_t round) {
  std::uint64_t state = seed + 0x9E3779B97F4A7C15ull * round;
  return splitmix64(state);
}

bool same_size(const program::RunInputs& a, const program::RunInputs& b) {
  return a.buffer_bytes == b.buffer_bytes && a.problem == b.problem;
}

}  // namespace

Gate::Gate(const program::Instance& instance, const Context& context, std::vector<lattice::Point> points)
    : instance_(instance), context_(context), points_(std::move(points)) {}

bool Gate::is_output(std::size_t argument) const {
  const program::ArgumentSpec& spec = instance_.program().arguments[argument];
  return spec.kind != ArgumentKind::dataset && spec.is_output();
}

Result<const program::RunInputs*> Gate::check_inputs(std::uint64_t seed) {
  if (!checked_ || checked_seed_ != seed) {
    FURLONG_TRY(checked_, instance_.check_inputs(seed, points_));
    checked_seed_ = seed;
    checked_id_ = ++next_id_;
  }
  return &*checked_;
}

Result<const program::RunInputs*> Gate::timed_inputs(std::uint64_t seed) {
  if (!timed_ || timed_seed_ != seed) {
    FURLONG_TRY(timed_, instance_.timed_inputs(seed, points_));
    timed_seed_ = seed;
    timed_id_ = ++next_id_;
  }
  return &*timed_;
}

Result<std::vector<std::size_t>> Gate::room(std::uint64_t seed) {
  std::vector<std::size_t> most(instance_.program().arguments.size(), 0);
  const auto widen = [&](const program::RunInputs& inputs) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], inputs.buffer_bytes[i]);
  };
  for (std::size_t i = 0; i < instance_.vector_count(); ++i) {
    FURLONG_TRY(const program::RunInputs inputs, instance_.vector_inputs(i, points_));
    widen(inputs);
  }
  FURLONG_TRY(const program::RunInputs* checked, check_inputs(seed));
  widen(*checked);
  FURLONG_TRY(const program::RunInputs* timed, timed_inputs(seed));
  widen(*timed);
  return most;
}

Status Gate::prepare(Buffers& buffers) {
  buffers_ = &buffers;
  device::Device* host = context_.host;
  const auto& languages = context_.device->facts().languages;
  if (host == nullptr && std::ranges::find(languages, device::Language::host) != languages.end())
    host = context_.device;
  FURLONG_TRY(reference_, Reference::make(instance_.program(), host));
  return {};
}

Status Gate::load_timed(std::uint64_t seed) {
  checked_.reset();  // heats need the memory more
  FURLONG_TRY(const program::RunInputs* inputs, timed_inputs(seed));
  FURLONG_CHECK(buffers_->load_dataset(context_));
  const Hold hold(context_);
  FURLONG_CHECK(buffers_->load(*inputs, timed_id_));
  return buffers_->poison(*inputs, {}, poison_);
}

std::size_t Gate::work_items(const program::RunInputs& inputs) const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < inputs.buffer_bytes.size(); ++i) {
    const program::ArgumentSpec& spec = instance_.program().arguments[i];
    if (spec.kind == ArgumentKind::dataset || spec.direction == Direction::scratch) continue;
    most = std::max(most, inputs.buffer_bytes[i] / element_bytes(spec.type));
  }
  return most;
}

/// How many sets of fresh inputs it takes until base's output, as the reference, stands over enough work
/// items.
std::size_t Gate::rounds(const program::RunInputs& checked) const {
  const std::size_t items = work_items(checked);
  if (items_from_base_ == 0 || items == 0) return 1;
  std::size_t bytes = 1;
  for (const Bytes& argument : checked.bytes) bytes += argument.size();
  const std::size_t wanted = (base_reference_items + items - 1) / items;
  return std::clamp<std::size_t>(wanted, 1,
                                 std::max<std::size_t>(1, std::min(kMostRounds, kMostBytes / bytes)));
}

Status Gate::run(const Asked& asked) {
  poison_ = Random(asked.seed, "poison");
  items_from_base_ = 0;
  case_ = 0;
  case_from_ms_ = context_.clock->now_ms();
  for (Entrant* entrant : asked.entrants) entrant->gate_ms = entrant->gate_base_ms = 0;
  for (std::size_t i = 0; i < instance_.vector_count(); ++i) {
    FURLONG_TRY(const program::RunInputs inputs, instance_.vector_inputs(i, points_));
    FURLONG_CHECK(run_case(asked, Kind::vector, inputs, ++next_id_));
  }
  FURLONG_TRY(const program::RunInputs* checked, check_inputs(asked.seed));
  FURLONG_CHECK(run_case(asked, Kind::fresh, *checked, checked_id_));
  const std::size_t count = rounds(*checked);
  for (std::size_t round = 1; round < count; ++round) {
    FURLONG_TRY(const program::RunInputs inputs,
                instance_.check_inputs(round_seed(asked.seed, round), points_));
    FURLONG_CHECK(run_case(asked, Kind::fresh, inputs, ++next_id_));
  }
  FURLONG_TRY(const program::RunInputs* timed, timed_inputs(asked.seed));
  if (asked.timed && !same_size(*checked, *timed))
    FURLONG_CHECK(run_case(asked, Kind::timed, *timed, timed_id_));
  for (Entrant* entrant : asked.entrants)
    if (entrant->in()) entrant->outcome->gated = true;
  return {};
}

Status Gate::run_case(const Asked& asked, Kind kind, const program::RunInputs& inputs, std::uint64_t id) {
  const auto nobody = [&] {
    return std::ranges::none_of(asked.entrants, [](const Entrant* entrant) { return entrant->in(); });
  };
  if (case_ == costs_.size()) costs_.emplace_back();
  drop_unfit(asked, 0, false);
  if (nobody()) return {};
  Case current{kind, &inputs, id, {}, {}};
  FURLONG_CHECK(expect(asked, current));
  costs_[case_].expect_ms = context_.clock->now_ms() - case_from_ms_;
  for (std::size_t i = 0; i < asked.entrants.size(); ++i) {
    drop_unfit(asked, i, true);
    if (asked.entrants[i]->in()) FURLONG_CHECK(run_entrant(asked, *asked.entrants[i], current));
  }
  ++case_;
  case_from_ms_ = context_.clock->now_ms();
  return {};
}

Status Gate::run_entrant(const Asked& asked, Entrant& entrant, const Case& current) {
  FURLONG_CHECK(asked.doing(entrant));
  FURLONG_CHECK(buffers_->load_dataset(context_));  // again when the one before wrote to it
  const double before_ms = context_.clock->now_ms();
  Status passed;
  {
    const Hold hold(context_, asked.held_ms);
    passed = launch(entrant, current, current.expected);
    if (passed) passed = check(entrant, current);
  }
  const double took_ms = context_.clock->now_ms() - before_ms;
  if (entrant.index == 0) costs_[case_].base_ms = took_ms;
  entrant.gate_ms += took_ms;
  entrant.gate_base_ms += costs_[case_].base_ms;
  if (passed) return {};
  return asked.failed(entrant, std::move(passed).error().with(current.inputs->name));
}

double Gate::cost_ms(const Entrant& entrant) const {
  double sum = entrant.gate_ms;
  for (const CaseCost& cost : costs_) sum += cost.expect_ms;
  return sum;
}

/// Its runs from this case on: base's, times how much slower than base it was so far.
double Gate::ahead_ms(const Entrant& entrant, std::size_t from_case) const {
  double sum = 0;
  for (std::size_t i = from_case; i < costs_.size(); ++i) sum += costs_[i].base_ms;
  return entrant.gate_base_ms > 0 ? sum * entrant.gate_ms / entrant.gate_base_ms : sum;
}

/// Before the run of the entrant at place `done` (those before it have run this case); `expected`: the
/// reference has run. The most expensive goes first when it is far slower than base, and else the last in
/// line: what is left shall be done by then, since half a gate proves nothing.
void Gate::drop_unfit(const Asked& asked, std::size_t done, bool expected) {
  if (!asked.until_ms) return;
  constexpr double far_slower = 2;
  double left_ms = *asked.until_ms - context_.clock->now_ms();
  for (std::size_t i = case_ + (expected ? 1 : 0); i < costs_.size(); ++i) left_ms -= costs_[i].expect_ms;
  std::vector<double> ahead(asked.entrants.size(), 0);
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    if (asked.entrants[i]->in()) ahead[i] = ahead_ms(*asked.entrants[i], case_ + (i < done ? 1 : 0));
    left_ms -= ahead[i];
  }
  const auto slowness = [&](std::size_t i) {
    const Entrant& one = *asked.entrants[i];
    return one.gate_base_ms > 0 && one.gate_ms > far_slower * one.gate_base_ms
               ? one.gate_ms / one.gate_base_ms
               : 1;
  };
  while (left_ms < 0) {
    std::optional<std::size_t> worst;
    for (std::size_t i = 0; i < ahead.size(); ++i)
      if (asked.entrants[i]->in() && asked.entrants[i]->index != 0 && ahead[i] > 0 &&
          (!worst || slowness(i) >= slowness(*worst)))
        worst = i;
    if (!worst) return;
    asked.unfit(*asked.entrants[*worst]);
    left_ms += ahead[*worst];
    ahead[*worst] = 0;
  }
}

Status Gate::expect(const Asked& asked, Case& current) {
  const std::size_t count = instance_.program().arguments.size();
  current.expected = current.inputs->expected;
  current.expected.resize(count);
  current.from_base.assign(count, false);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < count; ++i)
    if (is_output(i) && current.expected[i].empty() && current.inputs->buffer_bytes[i] > 0)
      missing.push_back(i);
  if (missing.empty()) return {};
  FURLONG_CHECK(buffers_->load_dataset(context_));
  // A host function could take minutes at the timed size: there base, which passed at the check's size, is
  // compared with.
  if (!reference_ || current.kind == Kind::timed) return expect_from_base(asked, current, missing);
  const Hold hold(context_, asked.held_ms);
  auto computed = [&] {
    const InHand hand(context_, Holding::reference, reference_->words(),
                      kReferenceLimits * context_.hand_limit_s);
    return reference_->outputs(instance_, *current.inputs, *buffers_);
  }();
  FURLONG_TRY(std::vector<Bytes> outputs, std::move(computed));
  for (const std::size_t i : missing) current.expected[i] = std::move(outputs[i]);
  return {};
}

Status Gate::expect_from_base(const Asked& asked, Case& current, const std::vector<std::size_t>& missing) {
  if (current.kind == Kind::fresh) items_from_base_ += work_items(*current.inputs);
  if (current.kind == Kind::timed) timed_from_base_ = true;
  Entrant& base = *asked.base;
  const auto twice = [&]() -> Status {
    const Hold hold(context_, asked.held_ms);
    FURLONG_CHECK(launch(base, current, {}));
    for (const std::size_t i : missing) {
      FURLONG_TRY(current.expected[i], buffers_->read(i, *current.inputs));
    }
    FURLONG_CHECK(launch(base, current, current.expected));
    for (const std::size_t i : missing) {
      double ratio = 0;
      FURLONG_CHECK_DOING(compare(base.point, i, current, ratio),
                          "base leaves part of '{}' unwritten, or gives another answer when run again",
                          instance_.program().arguments[i].name);
    }
    return {};
  };
  Status ran = twice();
  if (!ran) {
    const Error error = std::move(ran).error().with(current.inputs->name);
    FURLONG_CHECK(asked.failed(base, error));
    return error;
  }
  for (const std::size_t i : missing) current.from_base[i] = true;
  return {};
}

Status Gate::launch(Entrant& entrant, const Case& current, const std::vector<Bytes>& known) {
  FURLONG_CHECK(buffers_->load(*current.inputs, current.id));
  FURLONG_CHECK(buffers_->poison(*current.inputs, known, poison_));
  FURLONG_TRY(const Pipeline pipeline,
              make_launches(instance_, entrant.point, *entrant.module, *buffers_, *current.inputs));
  const InHand hand(context_, entrant.name());
  FURLONG_CHECK(launch_all(*context_.device, pipeline.once));
  FURLONG_CHECK(launch_all(*context_.device, pipeline.launches));
  if (!pipeline.once.empty()) {
    // A layout serves thousands of launches: one that they spoil is wrong from the second on.
    FURLONG_CHECK(context_.device->finish());
    FURLONG_CHECK(buffers_->restore(*current.inputs));
    FURLONG_CHECK(launch_all(*context_.device, pipeline.launches));
  }
  return context_.device->finish();
}

Status Gate::check(Entrant& entrant, const Case& current) {
  FURLONG_CHECK(buffers_->check_guards(*current.inputs));
  FURLONG_CHECK(buffers_->check_inputs(*current.inputs, poison_));
  double worst = 0;
  for (std::size_t i = 0; i < current.expected.size(); ++i) {
    if (!is_output(i) || current.expected[i].empty()) continue;
    double ratio = 0;
    FURLONG_CHECK_DOING(compare(entrant.point, i, current, ratio), "'{}'",
                        instance_.program().arguments[i].name);
    // What differs from base's output is base's error too; the reference alone tells this variant's.
    const bool known = !current.from_base[i] || instance_.program().check.reference == ReferenceKind::base;
    if (known) worst = std::max(worst, ratio);
  }
  if (instance_.program().check.kind == program::CheckKind::tolerance)
    entrant.outcome->error_ratio = std::max(entrant.outcome->error_ratio.value_or(0), worst);
  return {};
}

Status Gate::compare(const lattice::Point& point, std::size_t argument, const Case& current,
                     double& error_ratio) {
  const program::ArgumentSpec& spec = instance_.program().arguments[argument];
  const Bytes& want = current.expected[argument];
  if (want.size() != current.inputs->buffer_bytes[argument]) {
    return fail(Code::mismatch, "the reference has {} bytes and the output {}", want.size(),
                current.inputs->buffer_bytes[argument]);
  }
  const bool tolerant =
      instance_.program().check.kind == program::CheckKind::tolerance && program::is_floating(spec.type);
  if (!tolerant) {
    FURLONG_TRY(const bool equal, buffers_->equals(argument, want));
    if (equal) return {};
  }
  FURLONG_TRY(program::CheckSpec check, instance_.check(point));
  // At the timed size base and the variant may each be off by its bound, to opposite sides.
  if (current.kind == Kind::timed && current.from_base[argument]) {
    FURLONG_TRY(const double of_base, instance_.bound(instance_.lattice().base()));
    check.bound = std::min(check.bound + of_base, 1.0);
  }
  FURLONG_TRY(const Bytes got, buffers_->read(argument, *current.inputs));
  FURLONG_CHECK(program::compare_output(check, spec, got, want, &error_ratio));
  if (tolerant) return {};
  return fail(Code::mismatch, "its bytes differ from the reference's");
}

std::string Gate::words() const {
  const program::Program& program = instance_.program();
  std::string text;
  switch (program.check.reference) {
    case ReferenceKind::base:
      text = fmt::format("base's own output over {} work items", items_from_base_);
      break;
    case ReferenceKind::recipe:
      text = "the recipe's reference";
      break;
    case ReferenceKind::files:
      text = "expected files";
      break;
    case ReferenceKind::host:
    case ReferenceKind::library:
      text = reference_ ? reference_->words() : "a reference function";
      break;
  }
  const std::size_t vectors = instance_.vector_count();
  if (vectors > 0) text += fmt::format(" and {} vector{}", vectors, vectors == 1 ? "" : "s");
  if (vectors == 0 && program.check.reference == ReferenceKind::base)
    text += " (the program has no vectors: nothing checks base itself)";
  if (timed_from_base_) text += "; at the timed size base's output";
  return text;
}

}  // namespace furlong::race
