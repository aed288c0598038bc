// metamath-verify: the databases of the package metamath-databases, read and verified by the library and by the
// program `metamath` (package metamath) in the same run, both on one core.
#include <chrono>

#include "bench/harness.h"
#include "furlong/base/os/clock.h"
#include "furlong/shard/executor/metamath/verify.h"
using namespace furlong;
int main(int, char** argv) {
  using namespace furlong::shard::metamath;
  auto& c = system_clock();
  double a = c.now_ms();
  auto db = Database::read(argv[1]);
  if (!db) { fmt::print("{}\n", db.error().text()); return 1; }
  double b = c.now_ms();
  auto r = verify_database(*db);
  double d = c.now_ms();
  fmt::print("read {} verify {} axioms {} proofs {} steps {} bad {}\n", b - a, d - b, r->axioms, r->proofs, r->steps, r->unproved.size());
  for (size_t i = 0; i < r->unproved.size() && i < 5; ++i) fmt::print("{}\n", r->unproved[i].error.text());
}
