#pragma once
// What the suite's cases are made of.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "furlong/base/random.h"
#include "furlong/fleet/store/conformance/conformance.h"

/// In a case: fails it unless `condition` holds.
#define FURLONG_WANT(condition, ...)                                                                     \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      return ::furlong::fail(::furlong::Code::mismatch, "{}:{}: {}: {}", __FILE__, __LINE__, #condition, \
                             fmt::format(__VA_ARGS__));                                                  \
  } while (false)

namespace furlong::fleet::conformance {

/// A race with every field set, of a card like others; `number` makes id, and tells races apart.
DecodedRace a_race(std::uint32_t number, std::int64_t ts_us);
/// Lines in a body after a header; every line says the race's id. Its id is made of `number`.
IncomingBatch a_batch(std::string machine, std::uint32_t number, const std::vector<DecodedRace>& races);
/// Adds a line that is refused for `why`.
void add_refused(IncomingBatch& batch, std::string why);
PublicKey a_key(std::uint8_t number);
Token a_token(std::uint8_t number);

Result<std::unique_ptr<Store>> open_new(const MakePlace& make);
/// A new store with the importer "logs" in it.
Result<std::unique_ptr<Store>> open_with_importer(const MakePlace& make);
Result<BatchOutcome> add_one(Store& store, const IncomingBatch& batch);
/// `mismatch` when it is not there.
Result<Machine> the_machine(Store& store, std::string_view id);
/// Ids of the whole page, the newest first.
Result<std::vector<std::string>> page_ids(Store& store, const RaceFilter& filter = {});
/// A status that must be an error of this code.
Status expect_code(const Status& status, Code code, std::string_view what);
template <class T>
Status expect_code(const Result<T>& result, Code code, std::string_view what) {
  return expect_code(result ? Status() : Status(Error(result.error())), code, what);
}

std::vector<StoreCase> machine_cases();
std::vector<StoreCase> intake_cases();
std::vector<StoreCase> reading_cases();
std::vector<StoreCase> copy_cases();
std::vector<StoreCase> opening_cases();
std::vector<StoreCase> random_cases();

}  // namespace furlong::fleet::conformance
