#include "furlong/fleet/store/postgres/internal/wire.h"

#include <gtest/gtest.h>

namespace furlong::fleet::postgres {
namespace {

std::string sent(const Parameters& parameters, std::size_t index) {
  return {parameters.values()[index], static_cast<std::size_t>(parameters.lengths()[index])};
}

TEST(PostgresWire, SendsValuesInItsOwnFormat) {
  const std::vector<sql::Value> values{std::int64_t{-2}, 1.5, std::string_view("text"), ByteView(),
                                       std::string_view()};
  const Parameters parameters(values);
  EXPECT_EQ(sent(parameters, 0), "\xff\xff\xff\xff\xff\xff\xff\xfe") << "the big end first";
  EXPECT_EQ(sent(parameters, 1), std::string("\x3f\xf8\0\0\0\0\0\0", 8));
  EXPECT_EQ(sent(parameters, 2), "text");
  for (const std::size_t empty : {3u, 4u}) {
    EXPECT_NE(parameters.values()[empty], nullptr) << "that would be NULL";
    EXPECT_EQ(sent(parameters, empty), "");
  }
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(parameters.formats()[i], 1) << "binary";
  EXPECT_EQ(type_of(values[0]), 20u);
  EXPECT_EQ(type_of(values[1]), 701u);
  EXPECT_EQ(type_of(values[2]), 25u);
  EXPECT_EQ(type_of(values[3]), 17u);
}

TEST(PostgresWire, MendsTextsThatItCannotHold) {
  const std::string zero("a\0b", 3), torn = "\xc3\xa4 \xc3", bytes = "\xff\xfe z";
  const std::vector<sql::Value> values{std::string_view(zero), std::string_view(torn),
                                       std::string_view(bytes), std::string_view("\xf0\x9f\x8f\x87")};
  const Parameters parameters(values);
  EXPECT_EQ(sent(parameters, 0), "a?b");
  EXPECT_EQ(sent(parameters, 1), "\xc3\xa4 ?");
  EXPECT_EQ(sent(parameters, 2), "?? z");
  EXPECT_EQ(sent(parameters, 3), "\xf0\x9f\x8f\x87");
}

TEST(PostgresWire, ErrorsMeanWhatTheSuiteOfStoresExpects) {
  const std::pair<const char*, Code> states[] = {
      {"08006", Code::unavailable}, {"57P01", Code::unavailable}, {"57P03", Code::unavailable},
      {"25P03", Code::unavailable}, {"3D000", Code::unavailable}, {"53100", Code::exhausted},
      {"53200", Code::exhausted},   {"53300", Code::exhausted},   {"28P01", Code::denied},
      {"42501", Code::denied},      {"25006", Code::denied},      {"55P03", Code::timeout},
      {"57014", Code::timeout},     {"40P01", Code::timeout},     {"XX001", Code::corrupt},
      {"XX002", Code::corrupt},     {"58P01", Code::corrupt},     {"42P01", Code::corrupt},
      {"22021", Code::invalid},     {"23505", Code::internal},    {"", Code::internal}};
  for (const auto& [state, code] : states) EXPECT_EQ(code_of_state(state), code) << state;
  EXPECT_EQ(code_of_words("FATAL:  password authentication failed for user \"hub\""), Code::denied);
  EXPECT_EQ(code_of_words("fe_sendauth: no password supplied"), Code::denied);
  EXPECT_EQ(code_of_words("Connection refused"), Code::unavailable);
}

}  // namespace
}  // namespace furlong::fleet::postgres
