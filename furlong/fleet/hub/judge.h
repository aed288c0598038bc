#pragma once
// What is taken of a batch: each line on its own (docs/formats/record-batch.md). Pure functions, safe from
// any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "furlong/base/error.h"
#include "furlong/fleet/record_batch.h"
#include "furlong/fleet/store/store.h"

namespace furlong::fleet {

struct JudgeOptions {
  BatchLimits limits;
  int most_depth = 16;  ///< of a record's JSON
  double future_s =
      600;  ///< a record from further ahead of now is refused; the past may be as far as it likes
};

/// The memory that judging a batch and holding it may take, in times of its bytes: the lines once more, and
/// their variants decoded.
inline constexpr std::size_t judging_factor = 12;
/// And of each line besides, however short it is: what it was judged to, why it was refused, its part of the
/// reply.
inline constexpr std::size_t judging_line_bytes = 1024;
/// That the body may take.
std::size_t judging_bytes(std::string_view body);

/// A body whose signature was verified as `machine`'s. What is wrong with the batch as a whole is an error
/// (`invalid`, `incompatible`, `exhausted`: too large); what is wrong with a line stands in the line, names
/// the key, and is short and printable.
Result<IncomingBatch> judge_batch(std::string_view body, std::string_view machine, std::int64_t now_us,
                                  const JudgeOptions& options = {});

/// Each id once: accepted when a record of it is, else a duplicate when one is. A line whose id cannot be
/// read is named "line N" of the body. At most some hundred bytes a line.
BatchReply make_reply(const IncomingBatch& batch, const BatchOutcome& outcome);

}  // namespace furlong::fleet
