#pragma once
// Packs: a program frozen with its texts, vectors and dataset recipe, under one content hash.

#include <filesystem>
#include <memory>

#include "furlong/base/sign.h"
#include "furlong/program/program.h"

namespace furlong::program {

/// Files of a pack before it is written: relative name → bytes. pack.toml lists every other file with its
/// BLAKE2b-256; the content hash is over the sorted list.
struct PackContents {
  std::map<std::string, std::string> files;
};

/// Freezes a program file with everything that it refers to.
Result<PackContents> freeze_program(const Program& program, Files& files = system_files());
/// Writes the folder atomically (all or nothing); an existing pack with the same bytes is left alone, another
/// content is `invalid` unless `replace`.
Status write_pack(const PackContents& contents, const std::filesystem::path& folder, bool replace = false);
/// Content hash from the bytes.
Digest pack_hash(const PackContents& contents);
/// Verifies every file against pack.toml before anything is used: a flipped byte or a missing file is `corrupt`
/// and names it; a foreign file too. Then reads the program (lottery packs get their recipe and shipped lattice).
Result<std::shared_ptr<const Program>> load_pack(const std::filesystem::path& folder, Files& files = system_files());
/// Signs the content hash into pack.sig; verifies against trusted keys: `denied` otherwise.
Status sign_pack(const std::filesystem::path& folder, const KeyPair& key);
Status verify_pack_signature(const std::filesystem::path& folder, std::span<const PublicKey> trusted);

/// A program from what a user typed: a .toml file, a pack's folder, or the name of a shipped program ("lottery").
struct ProgramRequest {
  std::string what;
  std::string epoch_seed_hex;   ///< lottery only; empty: the demonstration seed
  std::int64_t day = 0;
  std::string geometry = "small";  ///< lottery: small | default
  std::int64_t dataset_mib = 0;    ///< lottery: 0 by geometry and day
  std::int64_t loads = 128, wide = 0;  ///< lottery's class
};
Result<std::shared_ptr<const Program>> open_program(const ProgramRequest& request, Files& files = system_files());

}  // namespace furlong::program
