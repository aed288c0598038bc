#pragma once
// Joins a back end's test program to the suite. Only for tests: it includes gtest.

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "furlong/device/conformance/conformance.h"

namespace furlong::device {

/// Cases that can never hold for a back end, by name, each with its reason.
using ConformanceExclusions = std::map<std::string, std::string>;

inline void PrintTo(const ConformanceCase& one, std::ostream* out) { *out << one.name; }

class ConformanceTest : public ::testing::TestWithParam<ConformanceCase> {
 protected:
  virtual std::unique_ptr<Driver> driver() const = 0;
  virtual ConformanceExclusions exclusions() const { return {}; }

  void run() const {
    const ConformanceExclusions excluded = exclusions();
    if (const auto found = excluded.find(GetParam().name); found != excluded.end()) {
      GTEST_SKIP() << "excluded: " << found->second;
    }
    const std::unique_ptr<Driver> made = driver();
    const Status status = GetParam().run(*made);
    if (!status && status.error().code() == Code::unavailable) GTEST_SKIP() << status.error().text();
    EXPECT_TRUE(status) << code_name(status.error().code()) << ": " << status.error().text();
  }
  /// An exclusion of a case that is gone would hide nothing and mislead.
  static void check_exclusions(const ConformanceExclusions& excluded) {
    for (const auto& [name, reason] : excluded) {
      bool found = false;
      for (const ConformanceCase& one : conformance_cases()) found = found || one.name == name;
      EXPECT_TRUE(found) << "the suite has no case '" << name << "'";
      EXPECT_FALSE(reason.empty()) << name;
    }
  }
};

}  // namespace furlong::device

/// FURLONG_CONFORMANCE(host, furlong::device::make_host_driver());
#define FURLONG_CONFORMANCE(backend, maker) \
  FURLONG_CONFORMANCE_EXCLUDING(backend, maker, ::furlong::device::ConformanceExclusions())

/// The same with an expression that gives the exclusions.
#define FURLONG_CONFORMANCE_EXCLUDING(backend, maker, excluded)                               \
  class backend##_conformance : public ::furlong::device::ConformanceTest {                   \
   protected:                                                                                 \
    std::unique_ptr<::furlong::device::Driver> driver() const override { return maker; }      \
    ::furlong::device::ConformanceExclusions exclusions() const override { return excluded; } \
  };                                                                                          \
  TEST_P(backend##_conformance, holds) {                                                      \
    check_exclusions(exclusions());                                                           \
    run();                                                                                    \
  }                                                                                           \
  INSTANTIATE_TEST_SUITE_P(device, backend##_conformance,                                     \
                           ::testing::ValuesIn(::furlong::device::conformance_cases()),       \
                           [](const auto& one) { return one.param.name; })
