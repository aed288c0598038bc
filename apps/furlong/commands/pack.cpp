#include <cstdlib>

#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/program/lottery/lottery.h"

namespace furlong::app {
namespace {

namespace fs = std::filesystem;

Result<program::PackContents> make_contents(const Arguments& arguments) {
  FURLONG_TRY(const auto request, program_request(arguments));
  if (request.what != "lottery") {
    FURLONG_TRY(const auto program,
                as_input(program::is_shipped(request) ? program::open_program(request)
                                                      : program::load_program_file(request.what)));
    return program::freeze_program(*program);
  }
  program::lottery::Parameters parameters;
  parameters.epoch_seed = program::lottery::demonstration_seed();
  if (!request.epoch_seed_hex.empty()) {
    FURLONG_TRY(const Bytes seed, from_hex(request.epoch_seed_hex));
    if (seed.size() != parameters.epoch_seed.size())
      return fail(Code::invalid, "--epoch-seed takes 64 hexadecimal digits, not {}",
                  request.epoch_seed_hex.size());
    std::copy(seed.begin(), seed.end(), parameters.epoch_seed.begin());
  }
  parameters.day = request.day;
  parameters.geometry = request.geometry.empty() ? "default" : request.geometry;
  parameters.dataset_mib = request.dataset_mib;
  parameters.loads = request.loads;
  parameters.wide = request.wide;
  return program::lottery::make_pack(parameters);
}

Result<int> run_make(const Arguments& arguments) {
  if (!arguments.given("--out")) return fail(Code::invalid, "pack make: --out DIR is missing");
  const fs::path folder = arguments.value("--out");
  FURLONG_TRY(const auto contents, make_contents(arguments));
  if (Status written = program::write_pack(contents, folder, arguments.flag("--replace")); !written) {
    std::error_code ignored;
    if (!arguments.flag("--replace") && fs::exists(folder, ignored))
      return Error(std::move(written).error()).with("without --replace");
    return Error(std::move(written).error());
  }
  const std::string hash = program::pack_hash(contents).hex();
  if (arguments.flag("--json")) {
    print_out(json_pretty(
        Json{{"schema", 1}, {"pack", folder.string()}, {"hash", hash}, {"files", contents.files.size()}}));
  } else {
    print_out(fmt::format("{}: {} files, hash {}\n", folder.string(), contents.files.size(), hash));
  }
  return exit_ok;
}

/// Whose signature a pack carries, in words. The pack was loaded, so a signature that is there holds.
std::string signature_text(const program::Program& program, const fs::path& folder) {
  const auto text = system_files().read(folder / "pack.sig", 4096);
  if (!text) return "none";
  constexpr std::string_view begin = "key = \"";
  const auto at = text->find(begin);
  const std::string key = at == std::string::npos ? "?" : text->substr(at + begin.size(), 64);
  if (program.trusted) return fmt::format("by the trusted key {}", key);
  return fmt::format("by {}, which is not in {}", key, (config_folder() / "trusted-keys").string());
}

Result<int> run_show(const Arguments& arguments) {
  const fs::path folder = arguments.positionals[0];
  FURLONG_TRY(const auto program, as_input(program::load_pack(folder)));
  std::vector<std::string> languages;
  for (const auto& edition : program->editions) languages.push_back(edition.language);
  Json class_values = Json::object();
  for (const auto& [name, expression] : program->class_features) {
    lattice::Environment problem(program->problem.begin(), program->problem.end());
    if (auto value = expression.evaluate(problem)) class_values[name] = value->text();
  }
  const std::uint64_t dataset = program->recipe ? program->recipe->dataset_bytes() : 0;
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"program", program->name},
                               {"epoch", program->epoch},
                               {"day", program->day},
                               {"class", class_values},
                               {"languages", languages},
                               {"vectors", program->vectors.size()},
                               {"dataset_bytes", dataset},
                               {"trusted", program->trusted}}));
    return exit_ok;
  }
  print_out(fmt::format("program    {}\n", program->name));
  if (!program->epoch.empty()) print_out(fmt::format("epoch      {} day {}\n", program->epoch, program->day));
  if (!class_values.empty()) print_out(fmt::format("class      {}\n", class_values.dump()));
  print_out(fmt::format("languages  {}\nvectors    {}\ndataset    {}\nsignature  {}\n", join(languages, " "),
                        program->vectors.size(), human_bytes(dataset), signature_text(*program, folder)));
  return exit_ok;
}

Result<int> run_verify(const Arguments& arguments) {
  const fs::path folder = arguments.positionals[0];
  FURLONG_TRY(const auto program, as_input(program::load_pack(folder)));
  if (arguments.flag("--signature") && !program->trusted)
    return fail(Code::denied,
                "{}: every file is as listed, but no trusted key signed it (signature: {}). Add the maker's "
                "key to {}, or sign it (furlong pack sign)",
                folder.string(), signature_text(*program, folder),
                (config_folder() / "trusted-keys").string());
  print_out(fmt::format("{}: every file is as listed; signature: {}\n", folder.string(),
                        signature_text(*program, folder)));
  return exit_ok;
}

Result<int> run_sign(const Arguments& arguments) {
  const fs::path folder = arguments.positionals[0];
  const fs::path file = arguments.value("--key", default_key_file().string());
  FURLONG_TRY(const KeyPair key, read_signing_key(file));
  FURLONG_CHECK(program::sign_pack(folder, key));
  print_out(fmt::format("{}: signed by {}\n", folder.string(), key.public_key.hex()));
  return exit_ok;
}

Result<int> run_keygen(const Arguments& arguments) {
  const fs::path file = arguments.value("--out", default_key_file().string());
  if (system_files().exists(file))
    return fail(Code::invalid, "{} is there already; choose another --out", file.string());
  const KeyPair key = KeyPair::generate();
  FURLONG_CHECK(system_files().write_atomic_secret(file, to_hex(key.seed()) + "\n"));
  print_out(
      fmt::format("secret key  {}\npublic key  {}\nWhoever is to trust it, you included, adds the public key "
                  "as a line to "
                  "trusted-keys in the configuration folder ({}).\n",
                  file.string(), key.public_key.hex(), (config_folder() / "trusted-keys").string()));
  return exit_ok;
}

PositionalSpec pack_positional() {
  return {.name = "PACK", .help = "The pack's folder.", .complete = "folder"};
}

}  // namespace

CommandSpec pack_make_command() {
  std::vector<OptionSpec> options{
      {.name = "--out",
       .value_name = "DIR",
       .help = "Folder to write; made if absent.",
       .complete = "folder"},
      {.name = "--replace", .value_name = "", .help = "Replace a pack of other content that is there."},
      {.name = "--json", .value_name = "", .help = "As JSON."}};
  for (auto& option : program_options())
    if (option.name != "--problem" && option.name != "--language" && option.name != "--allow-unsigned")
      options.push_back(option);
  return {.name = "pack make",
          .summary = "Freeze a program into a pack: texts, test vectors, dataset recipe, one content hash.",
          .description =
              "The same inputs give the same bytes. Every file is verified against the hash before a race "
              "uses it.",
          .positionals = {{.name = "PROGRAM",
                           .help = "A program file (.toml), or a shipped program's name (lottery, gemv).",
                           .choices = shipped_names()}},
          .options = options,
          .examples = {{"furlong pack make lottery --epoch-seed 00…ff --day 3 --out pack", ""},
                       {"furlong pack make my_kernel.toml --out my_pack", ""}},
          .run = run_make};
}

CommandSpec pack_show_command() {
  return {.name = "pack show",
          .summary = "Verify a pack and say what is in it.",
          .positionals = {pack_positional()},
          .options = {{.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong pack show pack", ""}},
          .run = run_show};
}

CommandSpec pack_verify_command() {
  return {
      .name = "pack verify",
      .summary = "Check every file of a pack against its content hash.",
      .positionals = {pack_positional()},
      .options = {{.name = "--signature", .value_name = "", .help = "A trusted signature is needed too."}},
      .examples = {{"furlong pack verify pack --signature", ""}},
      .run = run_verify};
}

CommandSpec pack_sign_command() {
  return {
      .name = "pack sign",
      .summary =
          "Sign a pack's content hash, so that others who trust the key race it without --allow-unsigned.",
      .positionals = {pack_positional()},
      .options = {{.name = "--key",
                   .value_name = "FILE",
                   .help = "Secret key. Default: signing-key in the configuration folder.",
                   .complete = "file"}},
      .examples = {{"furlong pack sign pack", ""}},
      .run = run_sign};
}

CommandSpec pack_keygen_command() {
  return {.name = "pack keygen",
          .summary = "Make a key pair for signing packs.",
          .positionals = {},
          .options = {{.name = "--out",
                       .value_name = "FILE",
                       .help = "Where the secret key goes. Default: signing-key in the configuration folder.",
                       .complete = "file"}},
          .examples = {{"furlong pack keygen", ""}},
          .run = run_keygen};
}

}  // namespace furlong::app
