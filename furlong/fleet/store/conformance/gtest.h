#pragma once
// Joins a kind of store to the suite. Only for tests: it includes gtest.

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "furlong/fleet/store/conformance/conformance.h"

namespace furlong::fleet {

/// Cases that can never hold for a kind, by name, each with its reason.
using StoreExclusions = std::map<std::string, std::string>;

inline void PrintTo(const StoreCase& one, std::ostream* out) { *out << one.name; }

/// Runs one case within a test.
inline void run_store_case(const StoreCase& one, const MakePlace& make, const StoreExclusions& excluded) {
  if (const auto found = excluded.find(one.name); found != excluded.end())
    GTEST_SKIP() << "excluded: " << found->second;
  auto first = make();
  if (!first && first.error().code() == Code::unavailable) GTEST_SKIP() << first.error().text();
  bool taken = false;
  // They stay until the case has ended: a store may be open longer than the case needs its place.
  std::vector<Result<OpenPlace>> places;
  const Status status = one.run([&] {
    places.push_back(std::exchange(taken, true) ? make() : first);
    return places.back();
  });
  EXPECT_TRUE(status) << one.name << ": " << code_name(status.error().code()) << ": "
                      << status.error().text();
}

/// An exclusion of a case that is gone would hide nothing and mislead.
inline void check_store_exclusions(const StoreExclusions& excluded) {
  for (const auto& [name, reason] : excluded) {
    bool found = false;
    for (const StoreCase& one : store_conformance_cases()) found = found || one.name == name;
    EXPECT_TRUE(found) << "the suite has no case '" << name << "'";
    EXPECT_FALSE(reason.empty()) << name;
  }
}

}  // namespace furlong::fleet

/// FURLONG_STORE_CONFORMANCE(memory, make_place());
#define FURLONG_STORE_CONFORMANCE(kind, maker) \
  FURLONG_STORE_CONFORMANCE_EXCLUDING(kind, maker, ::furlong::fleet::StoreExclusions())

/// The same with an expression that gives the exclusions.
#define FURLONG_STORE_CONFORMANCE_EXCLUDING(kind, maker, excluded)                           \
  class kind##_store : public ::testing::TestWithParam<::furlong::fleet::StoreCase> {};      \
  TEST_P(kind##_store, holds) {                                                              \
    ::furlong::fleet::check_store_exclusions(excluded);                                      \
    ::furlong::fleet::run_store_case(GetParam(), [] { return maker; }, excluded);            \
  }                                                                                          \
  INSTANTIATE_TEST_SUITE_P(store, kind##_store,                                              \
                           ::testing::ValuesIn(::furlong::fleet::store_conformance_cases()), \
                           [](const auto& one) { return one.param.name; })

/// The same as one test, for a kind whose server takes its time to start: CTest runs each test in a process
/// of its own.
#define FURLONG_STORE_CONFORMANCE_AT_ONCE(kind, maker)                                           \
  TEST(kind##_store, holds) {                                                                    \
    for (const ::furlong::fleet::StoreCase& one : ::furlong::fleet::store_conformance_cases()) { \
      ::furlong::fleet::run_store_case(one, [] { return maker; }, {});                           \
      if (IsSkipped()) return;                                                                   \
    }                                                                                            \
  }
