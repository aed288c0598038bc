#include "furlong/device/cuda/internal/findings.h"

#include <algorithm>

#include "furlong/base/text.h"

namespace furlong::device::cuda {
namespace {

using Level = Finding::Level;

constexpr std::uint64_t kContextBytes = 512ull << 20;  // less, and opening the card may already fail
constexpr std::uint64_t kRaceBytes = 2ull << 30;       // the lottery's default geometry

// NVML's bits, as slowing_reasons() leaves them.
constexpr std::uint64_t kPowerCapReason = 0x04;
constexpr std::uint64_t kHardwareReason = 0x08;
constexpr std::uint64_t kSyncBoostReason = 0x10;
constexpr std::uint64_t kThermalReasons = 0x20 | 0x40;
constexpr std::uint64_t kPowerBrakeReason = 0x80;
constexpr Status32 kStubLibrary = 34;

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Whatever else is here or not: this library was asked for.
Finding wrong_variable(const PlatformSeen& seen) {
  std::string text = fmt::format("FURLONG_CUDA_DRIVER names {}", *seen.named_driver);
  text += seen.named_driver_is_there ? ", which does not open: " + seen.no_driver->message()
                                     : ", a file that is not there";
  return {Level::problem, "cuda driver", std::move(text),
          "unset FURLONG_CUDA_DRIVER, or let it name a libcuda.so.1"};
}

Finding no_driver(const PlatformSeen& seen) {
  if (seen.named_driver) return wrong_variable(seen);
  Finding finding{Level::problem, "cuda driver", seen.no_driver->text(), ""};
  if (seen.no_driver->code() == Code::incompatible) {
    finding.mend = "update NVIDIA's driver";
    return finding;
  }
  // Its last words are a mend for everybody, and here it is known which one.
  finding.finding.resize(std::min(finding.finding.size(), finding.finding.find(": install it")));
  if (!seen.no_nvml) {
    finding.mend =
        "NVML is here without it: let this container have both (NVIDIA_DRIVER_CAPABILITIES=compute,utility)";
  } else if (seen.cards_on_the_bus > 0) {
    finding.finding += fmt::format("; {} of its cards on the bus", seen.cards_on_the_bus);
    finding.mend = "install NVIDIA's driver; in a container, start it with its cards (--gpus all)";
  } else {
    finding.level = Level::note;
    finding.mend = "nothing, unless an NVIDIA card is here: then install its driver";
  }
  return finding;
}

Finding no_card(const PlatformSeen& seen, Finding finding) {
  if (seen.visible_devices && seen.cards_of_nvml > 0) {
    finding.finding += fmt::format("; NVML sees {}, but CUDA_VISIBLE_DEVICES is '{}'", seen.cards_of_nvml,
                                   *seen.visible_devices);
    finding.mend = "unset CUDA_VISIBLE_DEVICES, or name a card in it that is there";
  } else if (seen.cards_of_nvml > 0 || seen.cards_on_the_bus > 0) {
    finding.mend =
        "let this user open /dev/nvidia* and /dev/nvidia-uvm (in a container: start it with --gpus all)";
  } else {
    finding.level = Level::note;
    finding.mend =
        "nothing, unless an NVIDIA card should be here: then see whether it sits well and has power";
  }
  return finding;
}

Finding not_started(const PlatformSeen& seen) {
  Finding finding{Level::problem, "cuda driver",
                  fmt::format("NVIDIA's driver ({}) does not start: {}", seen.driver_file, seen.started_name),
                  ""};
  switch (seen.started) {
    case kNoDevice:
      return no_card(seen, std::move(finding));
    case kInvalidDevice:
      finding.mend = "name cards that are there in CUDA_VISIBLE_DEVICES, or unset it";
      break;
    case kDriverMismatch:
      finding.finding += "; its library and the loaded kernel module are of different versions";
      finding.mend = "restart the machine, which loads the module that was installed last";
      break;
    case kSystemNotReady:
      finding.finding += "; cards on an NVSwitch wait for the fabric manager";
      finding.mend = "systemctl start nvidia-fabricmanager, of the driver's own version";
      break;
    case kCompatNotSupported:
      finding.finding += "; it is a forward-compatibility library, which this card does not take";
      finding.mend = "take its folder (cuda-compat) out of LD_LIBRARY_PATH and the loader's path";
      break;
    case kStubLibrary:
      finding.finding += "; it is the stub that programs are linked with";
      finding.mend = "take its folder (stubs) out of LD_LIBRARY_PATH";
      break;
    case kOutOfMemory:
      finding.mend = "free memory of the machine or of the card: nvidia-smi lists who uses the card";
      break;
    case kUnknown:
      finding.mend = "restart the machine (after a suspend it is enough to reload the module nvidia_uvm)";
      break;
    default:
      finding.mend = "see whether nvidia-smi works; else restart the machine";
  }
  return finding;
}

// One line a distinct architecture: cards of one kind share their compiler.
std::vector<Finding> compilers(const PlatformSeen& seen) {
  std::vector<Finding> findings;
  if (seen.no_nvrtc) {
    findings.push_back(
        {Level::problem, "cuda NVRTC", *seen.no_nvrtc, "let FURLONG_NVRTC name a libnvrtc.so, or unset it"});
    return findings;
  }
  std::vector<std::string> archs;
  for (const CardSeen& card : seen.cards) {
    if (std::find(archs.begin(), archs.end(), card.arch) == archs.end()) archs.push_back(card.arch);
  }
  for (const std::string& arch : archs) {
    const Result<std::size_t> best = choose_among(seen.compilers, seen.version, arch, seen.nvrtc_is_named);
    if (!best) {
      // The message ends with the mend, which has its own place here.
      std::string mend = nvrtc_mend(seen.version, arch, seen.nvrtc_is_named);
      std::string text = best.error().message();
      if (const std::size_t at = text.rfind(": " + mend); at != std::string::npos) text.resize(at);
      findings.push_back({Level::problem, "cuda NVRTC", std::move(text), std::move(mend)});
      continue;
    }
    const NvrtcCandidate& chosen = seen.compilers[*best];
    std::string text = fmt::format("NVRTC {}.{} ({}) for {}", chosen.major, chosen.minor, chosen.file, arch);
    for (const NvrtcCandidate& other : seen.compilers) {
      if (std::pair(other.major, other.minor) > std::pair(chosen.major, chosen.minor))
        text += fmt::format("; not {}.{}, which this driver or card does not take", other.major, other.minor);
    }
    findings.push_back({Level::ok, "cuda NVRTC", std::move(text), ""});
  }
  return findings;
}

/// The findings about one card: what stops a race first.
class CardFindings {
 public:
  CardFindings(const CardSeen& card, const PlatformSeen& seen)
      : card_(card), state_(*card.state), elsewhere_(seen.processes_elsewhere) {
    for (const CardProcess& process : state_.processes.value_or(std::vector<CardProcess>{})) {
      if (process.pid != seen.this_process) others_.push_back(process);
    }
  }

  std::vector<Finding> all() {
    compute_mode();
    use();
    memory();
    mig();
    slowed();
    settings();
    ecc();
    const bool problem = std::any_of(findings_.begin(), findings_.end(),
                                     [](const Finding& each) { return each.level == Level::problem; });
    if (!problem) findings_.insert(findings_.begin(), summary());
    return std::move(findings_);
  }

 private:
  // nvidia-smi counts cards in another order than CUDA, so it is told the card's own id.
  std::string smi(std::string_view options) const {
    const std::string& id = state_.uuid.empty() ? card_.bus_id : state_.uuid;
    return id.empty() ? fmt::format("nvidia-smi {}", options)
                      : fmt::format("nvidia-smi -i {} {}", id, options);
  }
  // "100 (2 GiB), 101 (numbered as outside this container)"
  std::string pids() const {
    std::vector<std::string> words;
    for (const CardProcess& process : others_) {
      std::vector<std::string> facts;
      if (process.bytes) facts.push_back(human_bytes(*process.bytes));
      if (elsewhere_.contains(process.pid)) facts.emplace_back("numbered as outside this container");
      words.push_back(facts.empty() ? std::to_string(process.pid)
                                    : fmt::format("{} ({})", process.pid, join(facts, ", ")));
    }
    return join(words, ", ");
  }
  void add(Level level, std::string_view what, std::string finding, std::string mend) {
    findings_.push_back(
        {level, fmt::format("{} {}", card_.address, what), std::move(finding), std::move(mend)});
  }

  void compute_mode() {
    if (!state_.compute_mode) return;
    switch (*state_.compute_mode) {
      case ComputeMode::shared:
        return;
      case ComputeMode::prohibited:
        add(Level::problem, "compute mode", "prohibited: no program may compute on it", smi("-c DEFAULT"));
        return;
      case ComputeMode::exclusive_thread:
      case ComputeMode::exclusive_process:
        add(Level::problem, "compute mode",
            others_.empty()
                ? std::string("exclusive: while a race holds it, the race's own trial process cannot open it")
                : fmt::format("exclusive, and held by process {}: nothing else can open it", pids()),
            smi("-c DEFAULT"));
    }
  }

  void use() {
    if (others_.empty() || exclusive()) return;
    add(Level::note, "in use", fmt::format("by process {}: their work disturbs every heat", pids()),
        others_.size() == 1
            ? fmt::format(
                  "end process {}{}, or race when it has ended", others_.front().pid,
                  elsewhere_.contains(others_.front().pid) ? ", numbered as outside this container" : "")
            : std::string("end them, or race when they have ended"));
  }

  void memory() {
    if (!state_.free_bytes || !state_.total_bytes || *state_.free_bytes >= kRaceBytes) return;
    const bool full = *state_.free_bytes < kContextBytes;
    add(full ? Level::problem : Level::note, "memory",
        fmt::format("{} of {} free, {}", human_bytes(*state_.free_bytes), human_bytes(*state_.total_bytes),
                    full ? "hardly enough to open it"
                         : "less than the 2 GiB of a race of the lottery's default geometry"),
        others_.empty() ? std::string("take a smaller problem size, or another card")
                        : fmt::format("end process {}, which holds it", pids()));
  }

  void mig() {
    if (state_.mig != true) return;
    add(Level::note, "MIG",
        "on: a race sees one slice of the card, while power, energy and temperature are the whole card's and "
        "other "
        "slices disturb it",
        smi("-mig 0") + ", for the whole card (it ends all slices)");
  }

  void slowed() {
    if (state_.throttle.value_or(0) == 0) return;
    const std::uint64_t reasons = *state_.throttle;
    const bool by_cap = (reasons & ~(kPowerCapReason | kSyncBoostReason)) == 0;
    std::string text = "slowed now by " + state_.throttle_text;
    if (state_.temperature_c) text += fmt::format(", at {:.0f} °C", *state_.temperature_c);
    if (state_.power_w && state_.power_limit_w)
      text += fmt::format(" and {:.0f} of {:.0f} W", *state_.power_w, *state_.power_limit_w);
    add(by_cap ? Level::note : Level::problem, "throttled", std::move(text), slowed_mend(reasons));
  }

  std::string slowed_mend(std::uint64_t reasons) const {
    if ((reasons & (kHardwareReason | kPowerBrakeReason)) != 0 && (reasons & kThermalReasons) == 0)
      return "see to its power supply and cables";
    if ((reasons & (kThermalReasons | kHardwareReason)) != 0)
      return "let it cool, and see to its fans and air";
    if ((reasons & kPowerCapReason) != 0 && lowered_limit())
      return smi(fmt::format("-pl {:.0f}", *state_.default_power_limit_w)) + ", its maker's limit";
    return "race when its other work has ended; a race under the power cap is fair all the same";
  }

  bool lowered_limit() const {
    return state_.power_limit_w && state_.default_power_limit_w &&
           *state_.power_limit_w < *state_.default_power_limit_w - 0.5;
  }

  void settings() {
    if (lowered_limit() && (state_.throttle.value_or(0) & kPowerCapReason) == 0) {
      add(Level::note, "power limit",
          fmt::format("{:.0f} W, below the {:.0f} W of its maker: winners may be others than on such a card",
                      *state_.power_limit_w, *state_.default_power_limit_w),
          smi(fmt::format("-pl {:.0f}", *state_.default_power_limit_w)));
    }
    if (state_.clocks_are_set == true && state_.clock_mhz && state_.max_clock_mhz &&
        *state_.clock_mhz < *state_.max_clock_mhz) {
      add(Level::note, "clocks",
          fmt::format("held at {} of at most {} MHz by a setting", *state_.clock_mhz, *state_.max_clock_mhz),
          smi("-rac") + ", unless they are held on purpose");
    }
    if (state_.persistence == false)
      add(Level::note, "persistence",
          "off: the driver sets the card up anew for each process, which takes seconds", smi("-pm 1"));
  }

  void ecc() {
    if (state_.ecc != false) return;
    add(Level::note, "ECC", "off: a flipped bit of its memory shows as a wrong output of a right kernel",
        smi("-e 1") + " and a restart, unless it is off on purpose");
  }

  Finding summary() const {
    std::vector<std::string> words{card_.arch};
    if (state_.clock_mhz && state_.max_clock_mhz)
      words.push_back(fmt::format("clock {} of at most {} MHz", *state_.clock_mhz, *state_.max_clock_mhz));
    if (state_.memory_clock_mhz && state_.max_memory_clock_mhz)
      words.push_back(
          fmt::format("memory {} of {} MHz", *state_.memory_clock_mhz, *state_.max_memory_clock_mhz));
    if (state_.power_w && state_.power_limit_w)
      words.push_back(fmt::format("{:.0f} of {:.0f} W", *state_.power_w, *state_.power_limit_w));
    if (state_.temperature_c) words.push_back(fmt::format("{:.0f} °C", *state_.temperature_c));
    if (state_.free_bytes && state_.total_bytes)
      words.push_back(
          fmt::format("{} of {} free", human_bytes(*state_.free_bytes), human_bytes(*state_.total_bytes)));
    if (state_.ecc == true) words.emplace_back("ECC on");
    return {Level::ok, card_.address + " state", join(words, ", "), ""};
  }

  bool exclusive() const {
    return state_.compute_mode == ComputeMode::exclusive_process ||
           state_.compute_mode == ComputeMode::exclusive_thread;
  }

  const CardSeen& card_;
  const CardState& state_;
  const std::set<unsigned>& elsewhere_;
  std::vector<CardProcess> others_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> findings_of(const PlatformSeen& seen) {
  if (seen.no_driver) return {no_driver(seen)};
  if (seen.started != kSuccess) return {not_started(seen)};
  std::vector<Finding> findings;
  findings.push_back(
      {Level::ok, "cuda driver",
       fmt::format("{}for CUDA {}, {} {}", seen.driver_version.empty() ? "" : seen.driver_version + " ",
                   cuda_version(seen.version), seen.cards.size(), seen.cards.size() == 1 ? "card" : "cards"),
       ""});
  for (Finding& finding : compilers(seen)) findings.push_back(std::move(finding));
  if (seen.no_nvml) {
    findings.push_back(
        {Level::note, "cuda NVML",
         "no clocks, power, energy or throttling are read, nor who else uses a card: " + *seen.no_nvml,
         "let the loader find libnvidia-ml.so.1 of this driver, or set FURLONG_NVML to it"});
  }
  if (seen.mps_pipe) {
    findings.push_back(
        {Level::note, "cuda MPS",
         fmt::format("the multi-process service is on ({}): processes share a card's time within a heat, "
                     "and a faulty kernel of one may end the others",
                     *seen.mps_pipe),
         "echo quit | nvidia-cuda-mps-control"});
  }
  for (const CardSeen& card : seen.cards) {
    if (!card.state) continue;
    for (Finding& finding : CardFindings(card, seen).all()) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace furlong::device::cuda
