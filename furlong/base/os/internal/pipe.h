#pragma once

#include <unistd.h>

#include <utility>

#include "furlong/base/error.h"

namespace furlong::internal {

/// A descriptor that closes itself.
class Pipe {
 public:
  Pipe() = default;
  explicit Pipe(int number) : number_(number) {}
  ~Pipe() { close(); }
  Pipe(Pipe&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Pipe& operator=(Pipe&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct PipePair {
  Pipe reader;
  Pipe writer;
};

/// Both ends above 2 and closed by exec. `exhausted` where no descriptor is left.
Result<PipePair> make_pipe();

}  // namespace furlong::internal
