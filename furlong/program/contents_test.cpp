// What arguments hold and how outputs compare: fills, .npy files, rewrites, the gate's comparison, half
// floats.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "furlong/base/random.h"
#include "furlong/program/fill.h"
#include "furlong/program/instance.h"
#include "furlong/program/internal/elements.h"
#include "furlong/program/internal/half.h"
#include "furlong/program/npy.h"
#include "furlong/program/rewrite.h"

namespace furlong::program {
namespace {

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

ArgumentSpec argument(ElementType type, Fill fill) {
  ArgumentSpec spec;
  spec.name = "x";
  spec.type = type;
  spec.fill = fill;
  return spec;
}

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().text();
}

// ---- fills

TEST(Fill, RandomFloatsStayInTheirRange) {
  ArgumentSpec spec = argument(ElementType::f32, Fill::random);
  spec.low = -2;
  spec.high = 3;
  const auto values = values_of<float>(*fill_buffer(spec, 10000, {}, 9));
  double sum = 0;
  for (const float value : values) {
    ASSERT_GE(value, -2.0f);
    ASSERT_LE(value, 3.0f);
    sum += static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.1);
}

TEST(Fill, RandomIntegersReachBothEnds) {
  ArgumentSpec spec = argument(ElementType::i8, Fill::random);
  spec.low = -3;
  spec.high = 2;
  std::map<int, int> seen;
  for (const auto value : values_of<std::int8_t>(*fill_buffer(spec, 6000, {}, 1))) ++seen[value];
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen.begin()->first, -3);
  EXPECT_EQ(seen.rbegin()->first, 2);
  for (const auto& [value, count] : seen) EXPECT_NEAR(count, 1000, 200);
}

TEST(Fill, WholeRangesOfSixtyFourBitsDoNotOverflow) {
  ArgumentSpec spec = argument(ElementType::u64, Fill::random);
  spec.high = 0x1p64;
  std::uint64_t any = 0;
  std::uint64_t all = ~std::uint64_t{0};
  for (const auto value : values_of<std::uint64_t>(*fill_buffer(spec, 1000, {}, 1))) {
    any |= value;
    all &= value;
  }
  EXPECT_EQ(any, ~std::uint64_t{0});
  EXPECT_EQ(all, 0u);
  spec = argument(ElementType::i64, Fill::random);
  spec.low = -0x1p63;
  spec.high = 0x1p63;
  bool negative = false;
  bool positive = false;
  for (const auto value : values_of<std::int64_t>(*fill_buffer(spec, 100, {}, 1))) {
    negative = negative || value < 0;
    positive = positive || value > 0;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Fill, TheOwnSeedAndTheNameMakeTheStream) {
  ArgumentSpec spec = argument(ElementType::u32, Fill::random);
  spec.high = 1e9;
  const Bytes first = *fill_buffer(spec, 16, {}, 5);
  EXPECT_EQ(*fill_buffer(spec, 16, {}, 5), first);
  spec.seed = 1;
  EXPECT_NE(*fill_buffer(spec, 16, {}, 5), first);
  EXPECT_EQ(*fill_buffer(spec, 16, {}, 4), first);  // added to the race's seed
  spec.seed = 0;
  spec.name = "y";
  EXPECT_NE(*fill_buffer(spec, 16, {}, 5), first);
}

TEST(Fill, SequencesWrapAtTheTypesEnd) {
  const auto bytes = *fill_buffer(argument(ElementType::u8, Fill::sequence), 300, {}, 0);
  EXPECT_EQ(bytes[255], 255);
  EXPECT_EQ(bytes[256], 0);
  EXPECT_EQ(values_of<float>(*fill_buffer(argument(ElementType::f32, Fill::sequence), 4, {}, 0)),
            (std::vector<float>{0, 1, 2, 3}));
}

TEST(Fill, ValuesAndZeros) {
  EXPECT_EQ(values_of<std::int16_t>(*fill_buffer(argument(ElementType::i16, Fill::value), 3, -7, 0)),
            (std::vector<std::int16_t>{-7, -7, -7}));
  EXPECT_EQ(*fill_buffer(argument(ElementType::f64, Fill::zeros), 2, {}, 0), Bytes(16));
  EXPECT_EQ(message(fill_buffer(argument(ElementType::u8, Fill::value), 3, 300, 0)),
            "value of argument 'x': 300 does not fit u8");
  EXPECT_EQ(message(fill_buffer(argument(ElementType::u8, Fill::value), 3, "word", 0)),
            "value of argument 'x': 'word' is a word, not a number");
}

TEST(Fill, AFileOfAnotherSizeIsNamed) {
  ArgumentSpec spec = argument(ElementType::f32, Fill::file);
  spec.file = "/p/x.npy";
  spec.data = std::make_shared<DataFile>(DataFile{ElementType::f32, {2}, Bytes(8)});
  EXPECT_EQ(message(fill_buffer(spec, 3, {}, 0)),
            "argument 'x': the file 'x.npy' has 2 elements of f32, the problem needs 3");
  EXPECT_EQ(fill_buffer(spec, 2, {}, 0)->size(), 8u);
}

// ---- half floats

TEST(Half, EveryHalfSurvivesTheWayThroughADouble) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const double value = internal::half_to_double(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(internal::half_from_double(value), half) << i;
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const auto low = static_cast<std::uint16_t>(random.below(0x7BFF));
    const double a = internal::half_to_double(low);
    const double b = internal::half_to_double(static_cast<std::uint16_t>(low + 1));
    const double u = i % 4 == 0 ? 0.5 : random.uniform();
    const double value = a + (b - a) * u;
    const std::uint16_t got = internal::half_from_double(value);
    const std::uint16_t want = value - a < b - value   ? low
                               : value - a > b - value ? static_cast<std::uint16_t>(low + 1)
                                                       : static_cast<std::uint16_t>(low + (low & 1));
    ASSERT_EQ(got, want) << value;
  }
  EXPECT_EQ(internal::half_from_double(1e9), 0x7C00);
  EXPECT_EQ(internal::half_from_double(-65519.99), 0xFBFF);
  EXPECT_TRUE(std::isnan(internal::half_to_double(internal::half_from_double(std::nan("")))));
}

// ---- comparison

CheckSpec tolerance(double bound) {
  CheckSpec check;
  check.kind = CheckKind::tolerance;
  check.bound = bound;
  return check;
}

TEST(Compare, ExactNamesTheFirstWrongElementAndCounts) {
  const ArgumentSpec spec = argument(ElementType::i32, Fill::none);
  const Bytes want = bytes_of<std::int32_t>({1, 2, 3, 4});
  EXPECT_TRUE(compare_output({}, spec, want, want));
  const auto status = compare_output({}, spec, bytes_of<std::int32_t>({1, 9, 3, 5}), want);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::mismatch);
  EXPECT_EQ(status.error().text(), "element 1: got 9, expected 2; 2 of 4 wrong");
  EXPECT_EQ(message(compare_output({}, spec, Bytes(8), Bytes(12))), "got 8 bytes, expected 12");
}

TEST(Compare, ExactSeesEveryBitOfAFloat) {
  const ArgumentSpec spec = argument(ElementType::f32, Fill::none);
  EXPECT_EQ(message(compare_output({}, spec, bytes_of<float>({-0.0f}), bytes_of<float>({0.0f}))),
            "element 0: got -0, expected 0; 1 of 1 wrong");
  Bytes nan = bytes_of<std::uint32_t>({0x7FC00000});
  EXPECT_TRUE(compare_output({}, spec, nan, nan));
  EXPECT_EQ(message(compare_output({}, spec, bytes_of<std::uint32_t>({0x7FC00001}), nan)),
            "element 0: got nan (0x0100c07f), expected nan (0x0000c07f); 1 of 1 wrong");
}

TEST(Compare, IntegersAreExactUnderATolerance) {
  const ArgumentSpec spec = argument(ElementType::u64, Fill::none);
  const Bytes want = bytes_of<std::uint64_t>({std::uint64_t{1} << 60});
  EXPECT_EQ(message(compare_output(tolerance(0.5), spec,
                                   bytes_of<std::uint64_t>({(std::uint64_t{1} << 60) + 1}), want)),
            "element 0: got 1152921504606846977, expected 1152921504606846976; 1 of 1 wrong");
}

TEST(Compare, ToleranceIsTheRatioOfNorms) {
  const ArgumentSpec spec = argument(ElementType::f64, Fill::none);
  const Bytes want = bytes_of<double>({3, 4});
  double ratio = -1;
  EXPECT_TRUE(compare_output(tolerance(0.11), spec, bytes_of<double>({3, 4.5}), want, &ratio));
  EXPECT_NEAR(ratio, 0.1, 1e-12);
  EXPECT_EQ(
      message(compare_output(tolerance(0.09), spec, bytes_of<double>({3, 4.5}), want)),
      "the error is 0.1 of the reference's norm, over the bound 0.09; worst element 1: got 4.5, expected 4");
}

TEST(Compare, NanAndInfinityNeverPassATolerance) {
  const ArgumentSpec spec = argument(ElementType::f32, Fill::none);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Bytes one = bytes_of<float>({1});
  EXPECT_EQ(message(compare_output(tolerance(0.9), spec, bytes_of<float>({nan}), one)),
            "element 0: got nan, expected 1: only finite numbers pass a tolerance");
  EXPECT_FALSE(compare_output(tolerance(0.9), spec, bytes_of<float>({nan}), bytes_of<float>({nan})));
  EXPECT_FALSE(
      compare_output(tolerance(0.9), spec, bytes_of<float>({infinity}), bytes_of<float>({infinity})));
  EXPECT_FALSE(compare_output(tolerance(0.9), spec, one, bytes_of<float>({infinity})));
}

TEST(Compare, ExtremeMagnitudesNeitherOverflowNorVanish) {
  const ArgumentSpec spec = argument(ElementType::f64, Fill::none);
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_TRUE(
      compare_output(tolerance(1e-9), spec, bytes_of<double>({huge, huge}), bytes_of<double>({huge, huge})));
  EXPECT_FALSE(compare_output(tolerance(1e-9), spec, bytes_of<double>({huge, huge}),
                              bytes_of<double>({huge, huge * 0.9})));
  EXPECT_FALSE(compare_output(tolerance(0.9), spec, bytes_of<double>({huge}), bytes_of<double>({-huge})));
  EXPECT_FALSE(compare_output(tolerance(0.9), spec, bytes_of<double>({tiny}), bytes_of<double>({0})));
  EXPECT_TRUE(compare_output(tolerance(0.9), spec, bytes_of<double>({0}), bytes_of<double>({0})));
}

// The scaled norm against the plain formula, where that does not overflow.
TEST(Compare, TheRatioIsThatOfThePlainFormula) {
  Random random(8);
  const ArgumentSpec spec = argument(ElementType::f64, Fill::none);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> want(1 + random.below(50));
    std::vector<double> got;
    double errors = 0;
    double squares = 0;
    for (double& value : want) {
      value = random.normal() * std::pow(10.0, static_cast<double>(random.between(-20, 20)));
      got.push_back(value + random.normal() * 1e-3 * value);
      errors += (got.back() - value) * (got.back() - value);
      squares += value * value;
    }
    double ratio = -1;
    (void)compare_output(tolerance(0.5), spec, bytes_of(got), bytes_of(want), &ratio);
    EXPECT_NEAR(ratio, std::sqrt(errors / squares), 1e-9 * ratio);
  }
}

// ---- rewrites

TEST(Rewrite, AnchorsMustBeThereExactlyAsOften) {
  const auto rewritten = [](std::string_view text, std::vector<Rewrite> rewrites) {
    const auto result = apply_rewrites(text, rewrites);
    return result ? *result : "error: " + result.error().text();
  };
  EXPECT_EQ(rewritten("a b c", {{"b", "X", 1}}), "a X c");
  EXPECT_EQ(rewritten("a b b", {{"b", "X", 2}}), "a X X");
  EXPECT_EQ(rewritten("a b c", {{"d", "X", 1}}), "error: anchor not found: 'd'");
  EXPECT_EQ(rewritten("a b b", {{"b", "X", 1}}), "error: anchor 'b' occurs 2 times, expected 1");
  EXPECT_EQ(rewritten("aaa", {{"aa", "X", 1}}), "error: anchor 'aa' occurs 2 times, expected 1");
  EXPECT_EQ(rewritten("aaa", {{"aa", "X", 2}}),
            "error: the anchors 'aa' and 'aa' overlap: one rewrite must not edit another's text");
  // One rewrite's text is no anchor of another.
  EXPECT_EQ(rewritten("a b", {{"a", "b", 1}, {"b", "a", 1}}), "b a");
  EXPECT_EQ(rewritten("one two", {{"one", "", 1}, {"two", "", 1}}), " ");
  EXPECT_EQ(rewritten("x\ny", {{"y\nx", "", 1}}), "error: anchor not found: 'y\\nx'");
}

TEST(Rewrite, TheOrderOfRewritesDoesNotMatter) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    std::string text;
    std::vector<Rewrite> rewrites;
    for (int i = 0; i < 5; ++i) {
      const std::string anchor = fmt::format("<{}>", i);
      rewrites.push_back({anchor, fmt::format("<{}>{}", random.below(5), random.next()), 1});
      text += anchor + std::string(random.below(3), '.');
    }
    const std::string first = *apply_rewrites(text, rewrites);
    random.shuffle(std::span(rewrites));
    EXPECT_EQ(*apply_rewrites(text, rewrites), first);
  }
}

// ---- .npy

TEST(Npy, WhatIsWrittenIsRead) {
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    const auto type = static_cast<ElementType>(random.below(11));
    std::vector<std::uint64_t> shape(random.below(4));
    std::uint64_t count = 1;
    for (auto& dimension : shape) {
      dimension = random.below(5);
      count *= dimension;
    }
    Bytes bytes(count * element_bytes(type));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    const auto file = write_npy(type, shape, bytes);
    ASSERT_TRUE(file) << file.error().text();
    const auto data = parse_npy(*file);
    ASSERT_TRUE(data) << data.error().text();
    EXPECT_EQ(data->type, type);
    EXPECT_EQ(data->shape, shape);
    EXPECT_EQ(data->bytes, bytes);
    EXPECT_EQ((file->size() - bytes.size()) % 64, 0u);
  }
}

// Files as NumPy writes them (numpy.save of the arrays in the comments).
Bytes numpy_file(std::string_view header, const Bytes& data) {
  std::string padded(header);
  while ((padded.size() + 11) % 64 != 0) padded += ' ';
  padded += '\n';
  Bytes file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<std::uint8_t>(padded.size()), 0};
  // Appended one by one: g++ 12 sees a false overflow in the range form.
  for (const char c : padded) file.push_back(static_cast<std::uint8_t>(c));
  for (const auto byte : data) file.push_back(byte);
  return file;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.array([[1, 2, 3]], dtype='>i2')
  const auto big = parse_npy(
      numpy_file("{'descr': '>i2', 'fortran_order': False, 'shape': (1, 3), }", {0, 1, 0, 2, 0, 3}));
  ASSERT_TRUE(big) << big.error().text();
  EXPECT_EQ(big->bytes, (Bytes{1, 0, 2, 0, 3, 0}));
  // numpy.array([True, False])
  const auto flags =
      parse_npy(numpy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", {1, 0}));
  ASSERT_TRUE(flags);
  EXPECT_EQ(flags->type, ElementType::u8);
  // numpy.float64(1) has the shape ()
  EXPECT_TRUE(parse_npy(numpy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", Bytes(8))));
  // One dimension is the same in both orders.
  EXPECT_TRUE(parse_npy(numpy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", Bytes(8))));
}

TEST(Npy, NamesWhatItCannotRead) {
  const auto error = [](std::string_view header, std::size_t bytes) {
    return message(parse_npy(numpy_file(header, Bytes(bytes))));
  };
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", 8),
            "the .npy array is in Fortran order; save it with numpy.ascontiguousarray");
  EXPECT_EQ(error("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8),
            "the .npy file has elements of type '<c8'; Furlong reads i1 to i8, u1 to u8, f2, f4, f8 and b1");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8),
            "byte 136: the .npy file has 8 bytes of elements, its shape needs 12");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8),
            "byte 136: the .npy file has 8 bytes of elements, its shape needs more than 64 bits can say");
  EXPECT_EQ(error("{'descr': '<f4', 'shape': (2,), }", 8), "the .npy header lacks fortran_order");
  EXPECT_EQ(error("{'descr': '<f4', 'descr': '<f4', }", 8),
            "the key 'descr' stands twice in the .npy header");
  EXPECT_EQ(error("['descr']", 8), "byte 10 of the .npy header: '{' should stand here");
  const std::string magic("\x93NUMPY\x09", 7);
  Bytes future(magic.begin(), magic.end());
  future.resize(128);
  EXPECT_EQ(message(parse_npy(future)), "found .npy format 9, expected 1, 2 or 3");
}

TEST(Npy, EveryTornFileIsAnError) {
  const std::vector<std::uint64_t> shape = {3};
  const Bytes file = *write_npy(ElementType::i32, shape, Bytes(12));
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto data = parse_npy(ByteView(file).subspan(0, length));
    ASSERT_FALSE(data) << length;
    EXPECT_EQ(data.error().code(), Code::corrupt) << data.error().text();
    EXPECT_TRUE(data.error().text().starts_with("byte ")) << data.error().text();
  }
}

TEST(DataFile, AnythingElseIsRaw) {
  const auto raw = parse_data_file(Bytes{1, 2, 3}, false);
  ASSERT_TRUE(raw);
  EXPECT_FALSE(raw->type);
  EXPECT_EQ(raw->bytes, (Bytes{1, 2, 3}));
  EXPECT_FALSE(parse_data_file(Bytes{1, 2, 3}, true));
}

}  // namespace
}  // namespace furlong::program
