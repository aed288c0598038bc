#pragma once
// Receipts on disk: which claims were carried out, with the evidence. docs/formats/receipt.md.

#include <filesystem>
#include <optional>
#include <string>

#include "furlong/base/os/file.h"
#include "furlong/shard/executor.h"

namespace furlong::shard {

inline constexpr int kReceiptVersion = 1;

/// The bytes of a receipt's file, and back. `corrupt` with the byte, `incompatible` for another version.
std::string print_receipt(const Receipt& receipt);
Result<Receipt> parse_receipt(std::string_view bytes, const std::string& name);

/// What the cache says of one claim.
struct ReceiptEntry {
  Digest claim;  ///< Claim::digest
  std::string executor;
  int executor_version = 0;
  Digest receipt;  ///< its address: BLAKE2b-256 of the receipt's file
  Cost check, job;
};

/// A folder of receipts by their address and of entries by claim digest. Thread safe; any number of processes
/// may use one folder: an entry appears whole or not at all, and after its receipt.
class ReceiptCache {
 public:
  explicit ReceiptCache(std::filesystem::path folder, Files& files = system_files())
      : folder_(std::move(folder)), files_(files) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// Nothing where there is no entry. `corrupt`, `incompatible` or `mismatch` for one that is damaged, of
  /// another version, or of another claim: what it says is not to be believed, and a new one replaces it.
  Result<std::optional<ReceiptEntry>> find(const Digest& claim) const;
  /// `unavailable`: it is gone; `corrupt`: its bytes are not those of its address.
  Result<Receipt> receipt(const ReceiptEntry& entry) const;
  /// On the disk once it returns; its address. The caller has verified it.
  Result<Digest> put(const Receipt& receipt) const;
  /// After put(): from now on the claim is carried out.
  Status add(const ReceiptEntry& entry) const;

  /// The claim is not carried out any more, whatever an entry says; its receipt stays where it is. No entry
  /// is no error.
  Status forget(const Digest& claim) const;

  std::filesystem::path entry_file(const Digest& claim) const;
  std::filesystem::path receipt_file(const Digest& address) const;

 private:
  std::filesystem::path folder_;
  Files& files_;
};

}  // namespace furlong::shard
