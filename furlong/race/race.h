#pragma once
// The race (docs/race-statistics.md): build every variant, gate it, time heats until decided, gate the winner
// again.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/base/json_fwd.h"
#include "furlong/base/os/clock.h"
#include "furlong/base/os/guard.h"
#include "furlong/base/os/process.h"
#include "furlong/device/device.h"
#include "furlong/program/instance.h"
#include "furlong/record/record.h"
#include "furlong/stats/elimination.h"

namespace furlong::race {

enum class Metric { rate, energy };
enum class CacheState { hot, cold };

struct Options {
  double window_ms = 5;
  stats::RaceRules rules;
  /// From the moment base is ready (compiled), for all that follows but base's own gate; clamped to 540.
  /// Builds, the trial and the gates take half of what is left each; what does not fit is out, saying so.
  double budget_s = 120;
  double max_pause_ms = 0;  ///< of the time that the device is held, gates and windows; 0: none
  double horizon_s = 0;     ///< time that the winner would serve; 0: the pause need not pay
  std::uint64_t seed = 1;
  bool classic = false;
  int rounds = 3;  ///< of --classic
  double classic_window_s = 2;
  Metric metric = Metric::rate;
  double energy_window_s = 2;    ///< continuous work of one finalist, at least
  double energy_budget_s = 120;  ///< of the finalists' windows, beside budget_s
  CacheState cache = CacheState::hot;
  bool trial = true;  ///< unknown variants go through the trial process first (never on virtual time)
  double trial_timeout_s = 20;           ///< for one variant
  std::uint64_t trial_memory_bytes = 0;  ///< device allocation limit in the trial; 0: what the buffers need
  bool keep_samples = true;              ///< raw samples in the outcome
};

enum class Phase { build, trial, gate, heats, confirm, second_gate, done };

/// What the progress bar shows. Called on the race's thread, at most about ten times a second.
struct Progress {
  Phase phase = Phase::build;
  std::size_t done = 0, total = 0;  ///< of this phase (variants; heats have no total)
  std::size_t heats = 0, survivors = 0;
  std::string leader;
  double leader_gain = 0;
  double elapsed_s = 0, budget_s = 0;  ///< of a check infinite
  std::string doing;                   ///< the variant in hand
};

enum class Exit { none, compile, trial, gate, launch, eliminated, quarantined, duplicate };

struct VariantOutcome {
  std::string name;
  lattice::Point point;
  std::string key;           ///< QuarantineKey::source; empty: out before it was known
  Exit exit = Exit::none;    ///< why it is out; none: still in at the end
  std::string why;           ///< one sentence
  std::string same_code_as;  ///< another variant with identical machine code, timed once
  bool fallback = false;     ///< as VariantPlan::fallback: not the kernel that its name asks for
  bool gated = false;
  double work_amount = 1;  ///< units per launch of the pipeline
  /// Units per second: base's median over heats; of the others that times the median ratio to base over their
  /// own heats, so that those of one that left early compare with base's.
  std::optional<double> rate;
  /// Over base (ratio - 1; in a race for energy: of work per joule), with the interval that holds at every
  /// heat at once. NaN: not timed, or no interval yet (classic races have none).
  double gain = 0, low = 0, high = 0;
  int heats = 0;
  device::KernelFacts kernel;
  std::optional<double> energy_j_per_unit;
  std::optional<double> power_w;      ///< mean over its energy windows
  std::uint64_t memory_bytes = 0;     ///< of its buffers on the device, guard zones left out
  std::optional<double> error_ratio;  ///< worst of its gates, tolerance checks
  double block_threads = 0;           ///< of its largest block
  /// Of its launches the lowest share of a multiprocessor's threads kept resident, where the device tells.
  std::optional<double> occupancy;
  /// The rate that the device's measured ceilings allow for its work, its rate over that, and the limit's
  /// name; filled by add_shares (furlong/race/ceiling.h).
  std::optional<double> ceiling_rate, share_of_ceiling;
  std::string ceiling;
};

/// Whether it is out only because the budget ended: nothing is wrong with it. The outcome has no word of its
/// own for that; the end of the reason says it (race_test.py holds both to each other).
bool had_no_time(const VariantOutcome& variant);

/// One heat as measured. In a race for energy the finalists' heats have energy_j_per_unit; in a classic race
/// a heat is a round.
struct HeatRecord {
  double at_s = 0;              ///< since the first heat
  std::vector<double> cost_ms;  ///< per variant; NaN when not timed
  double base_again_ms = 0;
  std::vector<std::uint32_t> order;  ///< in which they were timed; base twice
  /// Raw launches, the dropped first left out, when keep_samples: one list a window, in `order`.
  std::vector<std::vector<float>> samples_ms;
  std::vector<double> energy_j_per_unit;  ///< per variant; NaN when not timed; empty: not a heat for energy
  bool dropped = false;
  std::string why_dropped;
  bool descheduled = false;
  bool confirmation = false;
  device::Telemetry telemetry;
};

struct Outcome {
  stats::Verdict verdict = stats::Verdict::undecided;
  std::string verdict_word;  ///< winner, dead-heat, out-of-budget, classic, none (nothing to decide)
  std::size_t winner = 0;    ///< index into variants; 0 is base
  std::vector<VariantOutcome> variants;
  std::vector<HeatRecord> heats;
  int dropped_heats = 0, descheduled_heats = 0;
  std::string ts;  ///< ISO time of its end
  std::uint64_t seed = 0;
  Metric metric = Metric::rate;
  std::string reference;  ///< which reference the gate used, in words
  device::Facts device;
  double compile_ms = 0, trial_ms = 0, gate_ms = 0, heats_ms = 0, total_ms = 0;
  double paused_ms = 0;  ///< sum of the windows
  /// Of base alone, by the race's clock: until it was compiled, its gate, and one pipeline as first measured.
  double base_compile_ms = 0, base_gate_ms = 0, base_launch_ms = 0;
  std::uint64_t buffer_bytes = 0;  ///< of all the race's device buffers, guard zones included
  double work_amount = 1;
  std::optional<double> work_bytes, work_flops;
  std::string sentence;  ///< "u2 beats base by 2.1% (1.8% to 2.4%) after 21 heats" / "dead heat: …"
  std::vector<std::string> notes;
};

class Buffers;

/// What a race leaves for whoever goes on with the winner: valid while the race runs (from the first call of
/// Context::ready on the race's thread) and after it. Must go before the device.
struct Kept {
  std::shared_ptr<Buffers> buffers;  ///< furlong/race/buffers.h; the dataset keeps its address
  std::vector<std::shared_ptr<device::Module>> modules;  ///< by variant; null: not built or out
};

/// What Context::hand holds, as Hand::take's kind.
enum class Holding : std::uint32_t {
  nothing = 0,
  variant = 1,    ///< its name as the hand's
  reference = 2,  ///< Reference::words() as the hand's name
  lost = 3,       ///< who took the device with it, for good in this process: its name, a newline, why
};

/// A variant that ended an earlier attempt at this race with its process.
struct Fallen {
  std::string variant;
  std::string why;                   ///< "trap: killed by signal 11", "hang: ran past 20 s"
  std::optional<double> at_ms = {};  ///< when, by the race's clock: for the note that tells the time it took
};

/// What the race needs from outside. Pointers must live as long as the race; none is owned.
struct Context {
  device::Device* device = nullptr;
  device::Device* host = nullptr;  ///< for host references; may be null
  Clock* clock = nullptr;
  class Quarantine* quarantine = nullptr;  ///< may be null
  /// How to start a trial: argv of the furlong binary's `trial` command; empty: no trial process.
  std::vector<std::string> trial_command;
  /// How the trial finds the program again (ProgramRequest and problem as JSON).
  std::string trial_program_json;
  Processes* processes = nullptr;  ///< starts the trial; null: the system's
  std::function<void(const Progress&)> progress;
  std::stop_token stop;
  /// Told whatever foreign code runs in this process, so that a guard can name it when it takes the process
  /// (furlong/base/os/guard.h); may be null. A launch of a variant may take hand_limit_s, a window of it ten
  /// times what its estimate says beside that, a reference, which is written to be right and not fast, for 15
  /// times that.
  Hand* hand = nullptr;
  double hand_limit_s = 20;
  /// They are quarantined and out. With base among them there is no race: `mismatch`.
  std::vector<Fallen> fallen;
  /// Opens the device again after a variant took it with it; everything that the race made on the old one is
  /// gone by then. The race then begins anew without that variant, and notes the time that it took. Empty: a
  /// lost device ends the race. When `host` is the same device it is replaced too. Meanwhile the hand
  /// holds who took the device (Holding::lost): a platform that answers nothing more in this process
  /// (NVIDIA's driver after an illegal access) can only be used again by another one.
  std::function<Result<device::Device*>()> reopen;
  /// A device that others use too is held between these calls only: for one gate of one variant or one window
  /// at a time. Compiling needs no hold; giving up what was made does. Both or neither.
  std::function<void()> acquire, release;
  /// Filled when not null; its buffers are used again when they fit, and its dataset when this program reads
  /// the same (the lottery's classes of one epoch, day and size).
  Kept* kept = nullptr;
  /// A variant passed its gate and may serve: base first.
  std::function<void(std::size_t variant)> ready;
};

/// Runs one race of `points` (base first, none twice; else `invalid`). Errors: base failed its gate or
/// nothing could be timed → `mismatch` or the cause; a device that is lost and not opened again →
/// `unavailable`, naming the variant that ran (it is quarantined); stopped → `timeout`, within one window. A
/// failing variant is no error: it is out, with why. Deterministic on a virtual clock. Two races at once need
/// two devices; nothing else is shared.
Result<Outcome> run(const program::Instance& instance, std::span<const lattice::Point> points,
                    const Options& options, const Context& context);

/// What a race does before its heats, for the first `entrants` of `points` alone: each is compiled and gated
/// and one pipeline of it timed, with the buffers that a race of all `points` would have. No trial, no
/// record, and no budget: it takes what they take, and ends early by Context::stop alone. The outcome has no
/// heats and no verdict ("none"), and whoever failed is out, with why. Errors as those of run(), but a lost
/// device is not opened again. `invalid` for 0 entrants or more than there are points.
Result<Outcome> check(const program::Instance& instance, std::span<const lattice::Point> points,
                      std::size_t entrants, const Options& options, const Context& context);

/// The record and the race line of an outcome (id, machine and agent are left empty unless given).
record::RaceRecord make_record(const program::Instance& instance, const Outcome& outcome);
std::string race_line(const program::Instance& instance, const Outcome& outcome);
/// Everything measured, raw samples included.
Json to_json(const program::Instance& instance, const Outcome& outcome, const Options& options);

}  // namespace furlong::race
