// The wrapper of the vendor's matrix products, against a made-up library: layouts, buffers, errors.
#include <gtest/gtest.h>

#ifndef FURLONG_WITHOUT_DEVICE_CUDA
#include <array>
#include <cstdlib>

#include "furlong/device/cuda/cuda.h"
#include "furlong/device/cuda/vendor_blas.h"
#include "furlong/device/host/host.h"
#include "tests/fake_cuda/fakes.h"

namespace furlong::device {
namespace {

const fake::Fakes fakes;

class VendorBlasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Fakes::script("");
    setenv("FURLONG_CUBLAS", fake::library("cublas").c_str(), 1);
    unsetenv("FURLONG_FAKE_CUBLAS");
    driver = make_cuda_driver();
    auto opened = driver->open(0);
    ASSERT_TRUE(opened) << opened.error().text();
    card = *std::move(opened);
  }
  std::unique_ptr<Buffer> buffer(const Bytes& bytes) {
    auto made = card->allocate(bytes.size());
    EXPECT_TRUE(made) << made.error().text();
    EXPECT_TRUE((*made)->write(0, bytes));
    return *std::move(made);
  }

  std::unique_ptr<Driver> driver;
  std::unique_ptr<Device> card;
};

// A is 2 x 3 row by row, B 3 x 2 column by column: the product row by row.
TEST_F(VendorBlasTest, MultipliesInTheLayoutThatItSays) {
  auto blas = VendorBlas::open(*card);
  ASSERT_TRUE(blas) << blas.error().text();
  EXPECT_EQ(blas->version(), "cuBLAS 13.0.2");
  const auto a = buffer({1, 2, 3, 4, 5, 6}), b = buffer({1, 0, 255, 2, 1, 0}), c = buffer(Bytes(16));
  const VendorProduct product{
      .type = VendorProduct::Type::int8, .m = 2, .n = 2, .k = 3, .a = a.get(), .b = b.get(), .c = c.get()};
  ASSERT_TRUE(card->finish());
  const Status multiplied = blas->multiply(product);
  ASSERT_TRUE(multiplied) << multiplied.error().text();
  Bytes got(16);
  ASSERT_TRUE(c->read(0, got));
  std::array<std::int32_t, 4> values{};
  std::memcpy(values.data(), got.data(), got.size());
  EXPECT_EQ(values, (std::array<std::int32_t, 4>{1 - 3, 2 + 2, 4 - 6, 8 + 5}));
  const auto times = blas->time(std::span(&product, 1), 3, 2);
  ASSERT_TRUE(times) << times.error().text();
  EXPECT_EQ(times->size(), 3u);
}

TEST_F(VendorBlasTest, HalvesGiveSingles) {
  auto blas = VendorBlas::open(*card);
  ASSERT_TRUE(blas) << blas.error().text();
  // bf16 2 and 0.5, fp16 2 and 0.5
  for (const auto& [type, two, half] :
       {std::tuple{VendorProduct::Type::bf16, std::uint16_t{0x4000}, std::uint16_t{0x3f00}},
        std::tuple{VendorProduct::Type::fp16, std::uint16_t{0x4000}, std::uint16_t{0x3800}}}) {
    Bytes left(4), right(4);
    store_le(left.data(), two);
    store_le(left.data() + 2, half);
    store_le(right.data(), half);
    store_le(right.data() + 2, two);
    const auto a = buffer(left), b = buffer(right), c = buffer(Bytes(4));
    ASSERT_TRUE(card->finish());
    ASSERT_TRUE(
        blas->multiply({.type = type, .m = 1, .n = 1, .k = 2, .a = a.get(), .b = b.get(), .c = c.get()}));
    Bytes got(4);
    ASSERT_TRUE(c->read(0, got));
    EXPECT_EQ(load_le<float>(got.data()), 2.0f);
  }
}

TEST_F(VendorBlasTest, BuffersAndShapesThatDoNotFitAreNamed) {
  auto blas = VendorBlas::open(*card);
  ASSERT_TRUE(blas) << blas.error().text();
  const auto small = buffer(Bytes(15));
  const auto large = buffer(Bytes(64));
  VendorProduct product{.type = VendorProduct::Type::int8,
                        .m = 2,
                        .n = 2,
                        .k = 8,
                        .a = large.get(),
                        .b = large.get(),
                        .c = small.get()};
  auto status = blas->multiply(product);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "the buffer of C has 15 bytes, the product needs 16");
  product.c = nullptr;
  EXPECT_FALSE(blas->multiply(product));
  product.k = 0;
  status = blas->multiply(product);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::invalid);
  EXPECT_FALSE(blas->time({}, 1, 1));
}

TEST_F(VendorBlasTest, WhatTheLibraryAnswersIsToldAndOtherDevicesAreRefused) {
  const auto host_driver = make_host_driver();
  const auto host = host_driver->open(0);
  ASSERT_TRUE(host) << host.error().text();
  const auto refused = VendorBlas::open(**host);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);

  setenv("FURLONG_FAKE_CUBLAS", "create:3", 1);
  const auto failed = VendorBlas::open(*card);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text(), "starting: cuBLAS answers 3");

  setenv("FURLONG_FAKE_CUBLAS", "gemm:7", 1);
  auto blas = VendorBlas::open(*card);
  ASSERT_TRUE(blas) << blas.error().text();
  const auto bytes = buffer(Bytes(64));
  const auto status = blas->multiply({.type = VendorProduct::Type::int8,
                                      .m = 1,
                                      .n = 1,
                                      .k = 1,
                                      .a = bytes.get(),
                                      .b = bytes.get(),
                                      .c = bytes.get()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::invalid);
}

TEST_F(VendorBlasTest, NoLibraryIsUnavailable) {
  setenv("FURLONG_CUBLAS", "/nowhere/libcublas.so", 1);
  const auto none = VendorBlas::open(*card);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::unavailable);
  setenv("FURLONG_CUBLAS", fake::library("nvml").c_str(), 1);
  const auto other = VendorBlas::open(*card);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), Code::incompatible);
  EXPECT_NE(other.error().text().find("cublasCreate_v2"), std::string::npos);
}

}  // namespace
}  // namespace furlong::device
#endif
