#pragma once
// Packs: a program frozen with its texts, vectors and dataset recipe, under one content hash.

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "furlong/base/sign.h"
#include "furlong/program/program.h"

namespace furlong::program {

/// Files of a pack before it is written: relative name → bytes. pack.toml lists every other file with its
/// BLAKE2b-256; the content hash is over the sorted list.
struct PackContents {
  std::map<std::string, std::string> files;
};

/// Adds pack.toml: format, kind ("program", "lottery"), the content hash, `body` (further TOML that belongs
/// to the kind, tables of its own such as "[lottery]\nday = 3\n"; empty for "program") and the [files] table.
/// Names must be relative paths of letters, digits, '.', '_' and '-' ("cuda/kernel.cu"); `invalid` names one
/// that is not. Called by every maker of packs, last.
Status seal_pack(PackContents& contents, std::string_view kind, std::string_view body = {});
/// Whether pack.toml lists exactly these files with these digests and its content hash holds; `corrupt` names
/// the file (and in pack.toml the line). Returns the kind.
Result<std::string> verify_contents(const PackContents& contents, std::string_view where);

/// Freezes a program file with everything that it refers to.
Result<PackContents> freeze_program(const Program& program, Files& files = system_files());
/// Writes the folder atomically (all or nothing); an existing pack with the same bytes is left alone, another
/// content is `invalid` unless `replace`.
Status write_pack(const PackContents& contents, const std::filesystem::path& folder, bool replace = false);
/// Content hash from the bytes.
Digest pack_hash(const PackContents& contents);
/// Verifies every file against pack.toml before anything is used: a flipped byte or a missing file is
/// `corrupt` and names it; a foreign file too. Symbolic links, pipes, devices and paths out of the folder are
/// `denied`, a pack larger than half of the machine's memory (or 16 GiB) is `exhausted`. Then
/// reads the program from the verified bytes (lottery packs get their recipe and shipped lattice). `trusted`
/// is true when pack.sig is a signature by one of trusted_keys(). An emitter is not in the pack: the program
/// file names it, and it is one of this library's or of `emitters`; what another version of it makes shows in
/// Program::source_hash().
Result<std::shared_ptr<const Program>> load_pack(const std::filesystem::path& folder,
                                                 Files& files = system_files(), Emitters emitters = {});
/// The files of a pack's folder, pack.sig among them where it is there, verified as load_pack does it and
/// with its errors.
Result<PackContents> read_pack(const std::filesystem::path& folder, Files& files = system_files());
/// Signs the content hash into pack.sig; verifies against trusted keys: `denied` otherwise.
Status sign_pack(const std::filesystem::path& folder, const KeyPair& key);
Status verify_pack_signature(const std::filesystem::path& folder, std::span<const PublicKey> trusted);

/// Keys in `trusted-keys` of the user's configuration folder: one a line in hexadecimal, '#' starts a
/// comment. No file: none.
Result<std::vector<PublicKey>> trusted_keys(Files& files = system_files());

/// A program from what a user typed: a .toml file, a pack's folder, or the name of a shipped program
/// ("lottery"; "gemv" is programs/linear/gemv.toml).
struct ProgramRequest {
  std::string what;
  std::string epoch_seed_hex;  ///< lottery only; empty: the demonstration seed
  std::int64_t day = 0;
  std::string geometry = "small";      ///< lottery: small | default
  std::int64_t dataset_mib = 0;        ///< lottery: 0 by geometry and day
  std::int64_t loads = 128, wide = 0;  ///< lottery's class
};
Result<std::shared_ptr<const Program>> open_program(const ProgramRequest& request,
                                                    Files& files = system_files());

/// The names of shipped programs, sorted, each once: the lottery and those with a file where programs are
/// installed, or above this binary in a source tree.
std::vector<std::string> shipped_programs(Files& files = system_files());
/// Whether the request names a shipped program, by its name or by its file.
bool is_shipped(const ProgramRequest& request, Files& files = system_files());

}  // namespace furlong::program
