#pragma once
// The steps of a proof, from its normal or compressed form (appendix B of the book).

#include <cstdint>
#include <vector>

#include "furlong/shard/executor/metamath/database.h"

namespace furlong::shard::metamath {

enum class StepKind : std::uint8_t {
  hypothesis,  ///< value: index into Database::hypotheses()
  assertion,   ///< value: index into Database::assertions()
  recall,      ///< value: which saved result is pushed again
  save,        ///< the result on top of the stack gets the next number
  unknown,     ///< "?": a part that is not proved yet
};
struct ProofStep {
  StepKind kind = StepKind::unknown;
  std::uint32_t value = 0;
};

/// The steps of a $p, in their order. `invalid` with file, line and label for a label that is not there,
/// stands later, or is not active, and for a compressed proof that is not well formed.
Status decode_proof(const Database& database, const Assertion& theorem, std::vector<ProofStep>& into);

}  // namespace furlong::shard::metamath
