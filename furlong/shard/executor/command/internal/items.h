#pragma once
// The items of a store of commands as bytes (docs/formats/command-store.md). Who judges receipts has a reader
// of its own.

#include <cstdint>
#include <string>
#include <variant>

#include "furlong/base/bytes.h"
#include "furlong/base/hash.h"
#include "furlong/shard/executor/command/command_list.h"

namespace furlong::shard::command {

inline constexpr int kItemFormat = 1;

/// A file as it was when the store was made.
struct InputItem {
  std::string path;
  Digest hash;
  std::uint64_t bytes = 0;
  bool operator==(const InputItem&) const = default;
};

/// The same command gives the same bytes; its inputs are items of their own.
Bytes encode(const Command& command);
Bytes encode(const InputItem& input);
/// `mismatch` for anything else; `incompatible` for another format. A command has no inputs and no `where`.
Result<std::variant<Command, InputItem>> decode(ByteView bytes);

}  // namespace furlong::shard::command
