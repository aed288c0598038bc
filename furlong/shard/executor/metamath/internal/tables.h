#pragma once
// What the check's tables are made of: columns that only grow at the end and can be cut back to an earlier
// size, and an index that finds equal rows. Both grow in small steps, without copies and without spare
// capacity worth speaking of, so that the memory which is charged is the memory which is taken.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace furlong::shard::metamath {

/// Rows of trivial T in chunks that never move. One thread at a time.
template <class T>
class Column {
 public:
  static constexpr std::size_t kChunk = std::size_t{1} << 14;

  std::size_t size() const { return size_; }
  T& operator[](std::size_t row) { return chunks_[row / kChunk][row % kChunk]; }
  const T& operator[](std::size_t row) const { return chunks_[row / kChunk][row % kChunk]; }
  void push_back(const T& value) {
    if (size_ / kChunk == chunks_.size()) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    (*this)[size_++] = value;
  }
  /// `size` no more than there is.
  void truncate(std::size_t size) {
    size_ = size;
    chunks_.resize((size + kChunk - 1) / kChunk);
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

/// Runs of numbers, each in one piece. A run is named by where it begins.
class Runs {
 public:
  struct Mark {
    std::size_t chunks = 0, used = 0;
    std::uint64_t cells = 0;
  };

  /// No more run fits under 32-bit names.
  bool full() const { return chunks_.size() >= kMostChunks; }
  std::uint32_t append(std::span<const std::uint32_t> run) {
    if (chunks_.empty() || used_ + run.size() > kChunk) {
      // A run longer than a chunk gets one of its own, which then counts as full.
      chunks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(std::max(kChunk, run.size())));
      used_ = 0;
    }
    const auto name = static_cast<std::uint32_t>((chunks_.size() - 1) * kChunk + used_);
    std::memcpy(chunks_.back().get() + used_, run.data(), run.size_bytes());
    used_ = std::min(kChunk, used_ + run.size());
    cells_ += run.size();
    return name;
  }
  const std::uint32_t* at(std::uint32_t name) const { return chunks_[name / kChunk].get() + name % kChunk; }
  std::uint64_t cells() const { return cells_; }

  Mark mark() const { return {chunks_.size(), used_, cells_}; }
  void truncate(const Mark& mark) {
    chunks_.resize(mark.chunks);
    used_ = mark.used;
    cells_ = mark.cells;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 16;
  static constexpr std::size_t kMostChunks = (std::size_t{1} << 32) / kChunk - 1;
  std::vector<std::unique_ptr<std::uint32_t[]>> chunks_;
  std::size_t used_ = 0;
  std::uint64_t cells_ = 0;
};

/// Finds rows by hash: linear hashing (W. Litwin, 1980), which takes one bucket more with each row. Rows of a
/// bucket are chained from the newest on, so that the newest row is always the head of its bucket and can be
/// taken out again.
class UniqueIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  /// Of one row: its hash, the next in its bucket, and its bucket.
  static constexpr std::uint64_t kRowBytes = 12;

  /// The row with that hash for which equal(row) holds, or kNone.
  template <class Equal>
  std::uint32_t find(std::uint64_t hash, const Equal& equal) const {
    if (heads_.size() == 0) return kNone;
    const std::uint32_t code = fold(hash);
    for (std::uint32_t row = heads_[bucket(code)]; row != kNone; row = rows_[row].next)
      if (rows_[row].code == code && equal(row)) return row;
    return kNone;
  }

  /// The next row has that hash.
  void push_back(std::uint64_t hash) {
    if (heads_.size() == 0) heads_.push_back(kNone);
    while (heads_.size() < rows_.size()) split();
    const std::uint32_t code = fold(hash);
    std::uint32_t& head = heads_[bucket(code)];
    rows_.push_back({code, head});
    head = static_cast<std::uint32_t>(rows_.size() - 1);
  }

  void truncate(std::size_t size) {
    for (std::size_t row = rows_.size(); row > size; --row)
      heads_[bucket(rows_[row - 1].code)] = rows_[row - 1].next;
    rows_.truncate(size);
  }

 private:
  struct Row {
    std::uint32_t code, next;
  };

  static std::uint32_t fold(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }

  std::size_t bucket(std::uint32_t code) const {
    const std::size_t low = code & (level_ - 1);
    return low < heads_.size() - level_ ? code & (2 * level_ - 1) : low;
  }

  void split() {
    const std::size_t from = heads_.size() - level_;
    std::uint32_t row = heads_[from];
    std::uint32_t stay = kNone, go = kNone;  // last of either
    std::uint32_t first_stay = kNone, first_go = kNone;
    for (; row != kNone; row = rows_[row].next) {
      const bool goes = (rows_[row].code & level_) != 0;
      std::uint32_t& last = goes ? go : stay;
      std::uint32_t& first = goes ? first_go : first_stay;
      if (last == kNone)
        first = row;
      else
        rows_[last].next = row;
      last = row;
    }
    if (stay != kNone) rows_[stay].next = kNone;
    if (go != kNone) rows_[go].next = kNone;
    heads_[from] = first_stay;
    heads_.push_back(first_go);
    if (heads_.size() == 2 * level_) level_ *= 2;
  }

  Column<Row> rows_;
  Column<std::uint32_t> heads_;
  std::size_t level_ = 1;  // a power of two; heads_.size() lies in [level_, 2 * level_)
};

/// Of a few numbers, well mixed (the finaliser of SplitMix64 between them).
class RowHash {
 public:
  RowHash& add(std::uint64_t value) {
    code_ = (code_ ^ value) * 0xBF58476D1CE4E5B9ull;
    code_ ^= code_ >> 29;
    return *this;
  }
  std::uint64_t value() const {
    const std::uint64_t mixed = code_ * 0x94D049BB133111EBull;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::uint64_t code_ = 0x9E3779B97F4A7C15ull;
};

}  // namespace furlong::shard::metamath
