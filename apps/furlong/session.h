#pragma once
// What several commands share: the registry, opening a program and binding it to a device, reading JSON
// requests.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/furlong/command.h"
#include "furlong/base/json_fwd.h"
#include "furlong/base/sign.h"
#include "furlong/device/registry.h"
#include "furlong/program/instance.h"
#include "furlong/program/pack.h"
#include "furlong/race/quarantine.h"

namespace furlong::app {

/// The programs that are shipped, for completion.
std::vector<std::string> shipped_names();
/// Options that name a program, the same in race, knobs, pack make, export.
std::vector<OptionSpec> program_options();
/// The program named by the first positional and those options. Packs from elsewhere need a trusted signature
/// or --allow-unsigned.
Result<program::ProgramRequest> program_request(const Arguments& arguments);
/// "n=1024" → {"n", 1024}; "--problem n=1024,m=8" may be repeated.
Result<std::vector<std::pair<std::string, lattice::Value>>> problem_values(
    const std::vector<std::string>& texts);

/// Device facts as expressions see them: device.sm, device.warp, device.max_threads, device.shared_bytes,
/// device.multiprocessors, device.memory_mib, device.backend.
lattice::Environment device_facts(const device::Facts& facts);
/// The first language of the device that the program has. `invalid` names both lists. FURLONG_EMU=1 lets host
/// run cuda text.
Result<std::string> choose_language(const program::Program& program, const device::Facts& facts);

/// `unavailable` → the message lists what is there.
Result<std::unique_ptr<device::Device>> open_device(const device::Registry& registry,
                                                    const std::string& address);

/// The one thing to do where this back end has no device; empty where nothing helps.
std::string absent_mend(device::Driver& driver);

/// Opens the program, choosing the lottery's geometry by the device when none was asked for, and refuses a
/// pack without a trusted signature unless allowed (`denied`, with the mend). `request.geometry` is filled
/// in.
Result<std::shared_ptr<const program::Program>> open_trusted(program::ProgramRequest& request,
                                                             const device::Facts& facts, bool allow_unsigned);

/// config_folder()/signing-key
std::filesystem::path default_key_file();
/// A secret key that `furlong pack keygen` wrote.
Result<KeyPair> read_signing_key(const std::filesystem::path& file);

/// state_folder()/quarantine.sqlite
Result<race::Quarantine> open_quarantine();

/// A program request and problem as the trial process gets them, and back.
Json program_to_json(const program::ProgramRequest& request,
                     const std::vector<std::pair<std::string, lattice::Value>>& problem,
                     const std::string& language);
struct ProgramFromJson {
  program::ProgramRequest request;
  std::vector<std::pair<std::string, lattice::Value>> problem;
  std::string language;
};
Result<ProgramFromJson> program_from_json(const Json& json);

/// An input that is not there is the user's to mend (exit 2), not a missing device (exit 4).
template <class T>
Result<T> as_input(Result<T> result) {
  if (result || result.error().code() != Code::unavailable) return result;
  return Error(Code::invalid, result.error().text());
}

}  // namespace furlong::app
