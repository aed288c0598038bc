// Variants that fail while they run.

#include "furlong/base/hash.h"
#include "furlong/base/os/file.h"
#include "furlong/race/internal/hold.h"
#include "furlong/race/internal/run.h"
#include "furlong/race/quarantine.h"

namespace furlong::race {

/// What a failed gate depends on besides the variant: the program with its check, so that a mended check is
/// asked again.
std::string Race::evidence() const {
  if (!evidence_.empty()) return evidence_;
  const program::Program& program = instance_.program();
  const program::CheckSpec& check = program.check;
  Hasher hasher;
  hasher.add_field("furlong gate 1").add(program.source_hash().bytes);
  hasher.add_field(
      fmt::format("{} {} {}", static_cast<int>(check.kind), check.bound, static_cast<int>(check.reference)));
  if (check.bound_by_knob) hasher.add_field(check.bound_by_knob->text());
  hasher.add_field(check.file.string()).add_field(check.function).add_field(check.host_source);
  for (const auto& [name, data] : check.expected_data)
    if (data) hasher.add_field(name).add_field(as_text(data->bytes));
  // One that cannot be read is told when it is opened.
  if (check.reference == program::ReferenceKind::library)
    if (const auto library = system_files().read(check.file)) hasher.add_field(*library);
  for (const auto& [name, value] : check.problem) hasher.add_field(name).add_field(value.text());
  for (const program::Vector& vector : program.vectors) {
    hasher.add_field(vector.name);
    for (const auto& [name, value] : vector.scalars) hasher.add_field(name).add_field(value.text());
    for (const auto* side : {&vector.inputs, &vector.expected})
      for (const auto& [name, bytes] : *side) hasher.add_field(name).add_field(as_text(bytes));
  }
  evidence_ = hasher.finish().hex();
  return evidence_;
}

void Race::remember(const Entrant& entrant, bool good, const std::string& why, const std::string& evidence) {
  if (context_.quarantine == nullptr) return;
  QuarantineEntry entry;
  entry.key = {outcome_.device.silicon.hash(), outcome_.device.driver, entrant.key};
  entry.program = instance_.program().name;
  entry.variant = entrant.name();
  entry.device_label = outcome_.device.label;
  entry.why = why;
  entry.when = iso_time(context_.clock->wall_us());
  entry.good = good;
  entry.evidence = evidence;
  const Status put = context_.quarantine->put(entry);
  // The race does not depend on it: a full disk costs another trial the next time.
  if (!put)
    outcome_.notes.push_back(
        fmt::format("{} was not written to the quarantine: {}", entrant.name(), put.error().text()));
}

bool Race::device_answers() {
  const auto run_base = [&]() -> Status {
    const Hold hold(context_);
    const program::RunInputs* timed = gate_->any_timed_inputs();
    if (timed == nullptr) return fail(Code::internal, "nothing to probe with");
    FURLONG_TRY(const auto pipeline,
                make_launches(instance_, entrants_[0].point, *entrants_[0].module, *buffers_, *timed));
    const InHand hand(context_, entrants_[0].name());
    FURLONG_CHECK(launch_all(*context_.device, pipeline.once));
    FURLONG_CHECK(launch_all(*context_.device, pipeline.launches));
    return context_.device->finish();
  };
  const bool answers = run_base().has_value();
  buffers_->forget();  // it wrote at the timed size, whatever case was loaded
  return answers;
}

Status Race::on_failure(Entrant& entrant, const Error& error, std::string_view doing) {
  const Fault fault = fault_of(error);
  const bool base = entrant.index == 0;
  entrant.outcome->exit = fault == Fault::wrong ? Exit::gate : Exit::launch;
  entrant.outcome->gated = false;
  entrant.outcome->why = fault == Fault::wrong || fault == Fault::refused ? error.text() : fault_words(error);
  if (doing != "gate") entrant.outcome->why = fmt::format("{}: {}", doing, entrant.outcome->why);
  // A launch that does not fit is told again by the next race at no risk. Base is kept out for danger only: a
  // gate that it fails may be the reference's fault, and tells so again.
  if (fault == Fault::hang || fault == Fault::trap) remember(entrant, false, fault_words(error), {});
  if (fault == Fault::wrong && !base) remember(entrant, false, fault_words(error), evidence());
  if (base) {
    if (fault == Fault::wrong) return fail(Code::mismatch, "base failed its gate: {}", error.text());
    return Error(error).with(fmt::format("base, {}", doing));
  }
  if ((fault != Fault::hang && fault != Fault::trap) || device_answers()) return {};
  took_device_ = entrant.index;
  took_why_ = fault_words(error);
  return fail(Code::unavailable, "{} was lost while '{}' ran ({}){}", outcome_.device.address(),
              entrant.name(), error.text(),
              context_.quarantine != nullptr ? "; the variant is quarantined" : "");
}

}  // namespace furlong::race
