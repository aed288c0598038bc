#pragma once

#include <cstring>

#include "furlong/shard/types.h"

namespace furlong::shard {

/// A key is a hash already.
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::size_t word;
    std::memcpy(&word, key.bytes.data(), sizeof word);
    return word;
  }
};

}  // namespace furlong::shard
