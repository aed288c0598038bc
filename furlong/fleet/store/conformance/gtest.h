#pragma once
// Joins a kind of store to the suite. Only for tests: it includes gtest.

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "furlong/fleet/store/conformance/conformance.h"

namespace furlong::fleet {

/// Cases that can never hold for a kind, by name, each with its reason.
using StoreExclusions = std::map<std::string, std::string>;

inline void PrintTo(const StoreCase& one, std::ostream* out) { *out << one.name; }

class StoreConformanceTest : public ::testing::TestWithParam<StoreCase> {
 protected:
  virtual Result<OpenPlace> place() const = 0;
  virtual StoreExclusions exclusions() const { return {}; }

  void run() const {
    const StoreExclusions excluded = exclusions();
    for (const auto& [name, reason] : excluded) {
      bool found = false;
      for (const StoreCase& one : store_conformance_cases()) found = found || one.name == name;
      EXPECT_TRUE(found) << "the suite has no case '" << name << "'";
      EXPECT_FALSE(reason.empty()) << name;
    }
    if (const auto found = excluded.find(GetParam().name); found != excluded.end())
      GTEST_SKIP() << "excluded: " << found->second;
    if (const auto made = place(); !made && made.error().code() == Code::unavailable)
      GTEST_SKIP() << made.error().text();
    const Status status = GetParam().run([this] { return place(); });
    EXPECT_TRUE(status) << code_name(status.error().code()) << ": " << status.error().text();
  }
};

}  // namespace furlong::fleet

/// FURLONG_STORE_CONFORMANCE(memory, make_place());
#define FURLONG_STORE_CONFORMANCE(kind, maker) \
  FURLONG_STORE_CONFORMANCE_EXCLUDING(kind, maker, ::furlong::fleet::StoreExclusions())

/// The same with an expression that gives the exclusions.
#define FURLONG_STORE_CONFORMANCE_EXCLUDING(kind, maker, excluded)                           \
  class kind##_store : public ::furlong::fleet::StoreConformanceTest {                       \
   protected:                                                                                \
    ::furlong::Result<::furlong::fleet::OpenPlace> place() const override { return maker; }  \
    ::furlong::fleet::StoreExclusions exclusions() const override { return excluded; }       \
  };                                                                                         \
  TEST_P(kind##_store, holds) { run(); }                                                     \
  INSTANTIATE_TEST_SUITE_P(store, kind##_store,                                              \
                           ::testing::ValuesIn(::furlong::fleet::store_conformance_cases()), \
                           [](const auto& one) { return one.param.name; })
