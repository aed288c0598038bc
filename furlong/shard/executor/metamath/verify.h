#pragma once
// Every proof of a database, verified in one pass by stack execution on plain symbol strings: the fast way to
// a verdict, without a store, a record or a receipt.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "furlong/shard/executor/metamath/database.h"

namespace furlong::shard::metamath {

/// A theorem that is not proved, and why: `mismatch` with step numbers for a wrong proof, `invalid` for one
/// that cannot be decoded, `exhausted` for one that outgrows max_symbols.
struct Unproved {
  std::string theorem;
  Error error;
  bool unfinished = false;  ///< it has a "?" and nothing else was found wrong before that
};

struct VerifyReport {
  std::uint64_t axioms = 0;
  std::uint64_t proofs = 0;  ///< $p statements, whether proved or not
  std::uint64_t steps = 0;   ///< of the proofs as written, saved results not counted
  std::vector<Unproved> unproved;
};

struct VerifyDatabaseOptions {
  /// Of the expressions of one proof, all steps together.
  std::uint64_t max_symbols = 1u << 26;
  /// Called about every thousandth proof.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  std::stop_token stop;
};

/// Looks at every theorem, whatever it finds. `timeout` when stopped.
Result<VerifyReport> verify_database(const Database& database, const VerifyDatabaseOptions& options = {});

}  // namespace furlong::shard::metamath
