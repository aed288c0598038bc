#pragma once
// Judges a certificate against the claim's units, row by row. Shares nothing with what made it: the formats
// of items and certificate are read anew here, substitution and distinct variables are done another way.

#include <span>
#include <string>
#include <vector>

#include "furlong/shard/executor.h"

namespace furlong::shard::metamath {

/// Whether `body` shows that every statement the units own follows from those they refer to. `mismatch` with
/// why not; the errors of `items`; `timeout`. With options.sample below 1, the application of rules is looked
/// at for that share of the rows; all else (root, hypotheses used, references, what is proved) always.
Status check_certificate(ByteView body, std::span<const Unit> units, ItemSource& items,
                         const VerifyOptions& options);

/// As claim_over(); `mismatch` also when units prove each other in a circle.
Result<Claim> claim_of(std::span<const Unit> units);

}  // namespace furlong::shard::metamath
