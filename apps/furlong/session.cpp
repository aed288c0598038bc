#include "apps/furlong/session.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "furlong/base/json.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/lattice/value_json.h"
#include "furlong/select/select.h"

namespace furlong::app {

// A list of its own: what is installed beside a binary does not change what its completion script says.
std::vector<std::string> shipped_names() { return {"lottery", "gemv", "gemm", "gemm_real"}; }

std::vector<OptionSpec> program_options() {
  return {
      {.name = "--problem",
       .value_name = "N=V[,…]",
       .help = "Problem parameters in place of the program's defaults, such as n=4096,m=512.",
       .repeatable = true},
      {.name = "--language",
       .value_name = "L",
       .help = "Language of the kernel text, where the program has several.",
       .choices = {"host", "opencl", "cuda", "metal"}},
      {.name = "--allow-unsigned",
       .value_name = "",
       .help = "Run a pack without a trusted signature. A pack is code and runs as you."},
      {.name = "--epoch-seed",
       .value_name = "HEX",
       .help = "Lottery: the epoch's seed, 64 hexadecimal digits. Without it the fixed demonstration seed."},
      {.name = "--day",
       .value_name = "N",
       .help = "Lottery: the day, which the dataset grows with. Default 0."},
      {.name = "--geometry",
       .value_name = "G",
       .help = "Lottery: size of cache and dataset: small (1 MiB / 16 MiB) or default (16 MiB / 1 GiB). "
               "Without it small "
               "on a CPU, and in a pack that is made for no device default.",
       .choices = {"small", "default"}},
      {.name = "--dataset-mib",
       .value_name = "M",
       .help = "Lottery: dataset size, 64 to 8192 MiB, in place of the geometry's."},
      {.name = "--loads",
       .value_name = "N",
       .help = "Lottery: loads per hash. Default 128.",
       .choices = {"32", "64", "128"}},
      {.name = "--wide",
       .value_name = "N",
       .help = "Lottery: 16-byte loads among them. Default 0.",
       .choices = {"0", "8", "32"}},
  };
}

Result<program::ProgramRequest> program_request(const Arguments& arguments) {
  program::ProgramRequest request;
  request.what = arguments.positionals.empty() ? "lottery" : arguments.positionals[0];
  request.epoch_seed_hex = arguments.value("--epoch-seed");
  FURLONG_TRY(request.day, arguments.integer("--day", 0, 0, 1'000'000));
  request.geometry = arguments.value("--geometry");
  FURLONG_TRY(request.dataset_mib, arguments.integer("--dataset-mib", 0, 64, 8192));
  FURLONG_TRY(request.loads, arguments.integer("--loads", 128));
  FURLONG_TRY(request.wide, arguments.integer("--wide", 0));
  return request;
}

Result<std::vector<std::pair<std::string, lattice::Value>>> problem_values(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, lattice::Value>> values;
  for (const std::string& text : texts) {
    for (const std::string& item : split(text, ',')) {
      const auto equals = item.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
        return fail(Code::invalid, "--problem takes NAME=VALUE, not '{}'", item);
      const std::string name = item.substr(0, equals);
      const std::string value = item.substr(equals + 1);
      if (auto integer = parse_integer(value)) {
        values.emplace_back(name, lattice::Value(*integer));
      } else if (auto number = parse_number(value)) {
        values.emplace_back(name, lattice::Value(*number));
      } else if (value == "true" || value == "false") {
        values.emplace_back(name, lattice::Value(value == "true"));
      } else {
        values.emplace_back(name, lattice::Value(value));
      }
    }
  }
  return values;
}

lattice::Environment device_facts(const device::Facts& facts) { return expression_facts(facts); }

Result<std::string> choose_language(const program::Program& program, const device::Facts& facts) {
  const char* emulate = std::getenv("FURLONG_EMU");
  if (facts.backend == "host" && emulate && std::string_view(emulate) == "1" && program.edition("cuda"))
    return "cuda";
  auto language = common_language(program, facts);
  if (language) return language;
  return fail(language.error().code(), "{}. Choose another with --device (furlong devices)",
              language.error().text());
}

std::string absent_mend(device::Driver& driver) {
  for (const device::Finding& finding : driver.findings()) {
    if (!finding.mend.empty()) return finding.mend;
  }
  if (driver.name() == "opencl")
    return "for the CPU: apt-get install pocl-opencl-icd; for a card: its vendor's OpenCL package";
  if (driver.name() == "host") return "apt-get install g++, or set FURLONG_CXX";
  return "";
}

Result<std::unique_ptr<device::Device>> open_device(const device::Registry& registry,
                                                    const std::string& address) {
  return registry.open(address);
}

Result<std::shared_ptr<const program::Program>> open_trusted(program::ProgramRequest& request,
                                                             const device::Facts& facts,
                                                             bool allow_unsigned) {
  if (request.geometry.empty())
    request.geometry = facts.runs_on_host_cpu || facts.virtual_time ? "small" : "default";
  FURLONG_TRY(auto program, as_input(program::open_program(request)));
  if (!program->trusted && !allow_unsigned) {
    return fail(Code::denied,
                "{} has no signature by a trusted key, and a pack is code that runs as you. Sign it (furlong "
                "pack sign), "
                "add its maker's key to {}, or say --allow-unsigned",
                request.what, (config_folder() / "trusted-keys").string());
  }
  return program;
}

Result<race::Quarantine> open_quarantine() {
  return race::Quarantine::open(state_folder() / "quarantine.sqlite");
}

namespace {

Result<lattice::Value> value_from_json(const Json& json) {
  if (json.is_boolean()) return lattice::Value(json.get<bool>());
  if (json.is_number_integer()) return lattice::Value(json.get<std::int64_t>());
  if (json.is_number_float()) return lattice::Value(json.get<double>());
  if (json.is_string()) return lattice::Value(json.get<std::string>());
  return fail(Code::invalid, "a problem value is a boolean, a number or a string");
}

}  // namespace

Json program_to_json(const program::ProgramRequest& request,
                     const std::vector<std::pair<std::string, lattice::Value>>& problem,
                     const std::string& language) {
  Json values = Json::object();
  for (const auto& [name, value] : problem) values[name] = lattice::value_json(value);
  return Json{{"what", request.what},
              {"epoch_seed", request.epoch_seed_hex},
              {"day", request.day},
              {"geometry", request.geometry},
              {"dataset_mib", request.dataset_mib},
              {"loads", request.loads},
              {"wide", request.wide},
              {"language", language},
              {"problem", values}};
}

Result<ProgramFromJson> program_from_json(const Json& json) {
  ProgramFromJson out;
  FURLONG_TRY(out.request.what, json_string(json, "what", "program"));
  FURLONG_TRY(out.language, json_string(json, "language", "program"));
  // An application that embeds Furlong writes this text too: what only the lottery has may be left out.
  const auto text = [&](const char* key, std::string& value) -> Status {
    if (!json.contains(key)) return {};
    FURLONG_TRY(value, json_string(json, key, "program"));
    return {};
  };
  const auto number = [&](const char* key, std::int64_t& value) -> Status {
    if (!json.contains(key)) return {};
    FURLONG_TRY(value, json_integer(json, key, "program"));
    return {};
  };
  FURLONG_CHECK(text("epoch_seed", out.request.epoch_seed_hex));
  FURLONG_CHECK(number("day", out.request.day));
  FURLONG_CHECK(text("geometry", out.request.geometry));
  FURLONG_CHECK(number("dataset_mib", out.request.dataset_mib));
  FURLONG_CHECK(number("loads", out.request.loads));
  FURLONG_CHECK(number("wide", out.request.wide));
  if (!json.contains("problem")) return out;
  if (!json["problem"].is_object()) return fail(Code::invalid, "program.problem is no object");
  for (const auto& [name, value] : json["problem"].items()) {
    FURLONG_TRY(auto parsed, value_from_json(value));
    out.problem.emplace_back(name, std::move(parsed));
  }
  return out;
}

std::filesystem::path default_key_file() { return config_folder() / "signing-key"; }

Result<KeyPair> read_signing_key(const std::filesystem::path& file) {
  // By its name: in some files a public key is as many digits as a secret one.
  if (file.extension() == ".pub")
    return fail(Code::invalid, "{}: this is the public key; the secret one is the file without .pub",
                file.string());
  FURLONG_TRY(const std::string text, as_input(system_files().read(file, 4096)));
  auto seed = from_hex(trim(text));
  if (!seed)
    return Error(std::move(seed).error())
        .with(fmt::format(
            "{}: not a signing key (furlong pack keygen makes one, furlong fleet keygen one of a fleet)",
            file.string()));
  return KeyPair::from_seed(*seed);
}

}  // namespace furlong::app
