// `furlong init`: what is read out of kernels, and that what is written can be read.
#include "furlong/program/init.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "furlong/program/instance.h"
#include "furlong/program/internal/kernel_text.h"

namespace furlong::program {
namespace {

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().text();
}

// Writes the file for a kernel, reads it back, and makes base's plan, launches and inputs of it.
std::shared_ptr<const Program> round_trip(std::string_view source, const std::string& file_name,
                                          std::string_view language) {
  const auto first = init_program(source, file_name);
  EXPECT_TRUE(first) << first.error().text();
  if (!first) return nullptr;
  FakeFiles files;
  EXPECT_TRUE(files.write_atomic("/p/" + file_name, source));
  const auto program = parse_program(first->text, first->file_name, "/p", files);
  EXPECT_TRUE(program) << program.error().text() << first->text;
  if (!program) return nullptr;
  const auto instance = Instance::make(*program, language, {}, {});
  EXPECT_TRUE(instance) << instance.error().text();
  const auto points = instance->select("catalogue");
  EXPECT_TRUE(points) << points.error().text();
  const auto inputs = instance->check_inputs(1, *points);
  EXPECT_TRUE(inputs) << inputs.error().text();
  for (const auto& point : *points) {
    const auto plan = instance->plan(point);
    EXPECT_TRUE(plan) << plan.error().text();
    EXPECT_TRUE(instance->launches(point, *inputs));
  }
  EXPECT_TRUE(instance->work(instance->lattice().base()));
  return *program;
}

constexpr std::string_view kSaxpy = R"(// y = a x + y
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 256  // threads of a block
#endif
#define UNROLL 4
#define VERSION 7
/* __global__ void commented(float* x) {} */
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
saxpy(const float* __restrict__ x, float* y, const float a, int n) {
  int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
#pragma unroll UNROLL
  for (int k = 0; k < UNROLL; ++k)
    if (i < n) y[i] = a * x[i] + y[i];
}
)";

TEST(Init, WritesThisFileForSaxpy) {
  const auto first = init_program(kSaxpy, "saxpy.cu");
  ASSERT_TRUE(first) << first.error().text();
  const std::filesystem::path golden = "furlong/program/testdata/saxpy.toml";
  if (std::getenv("FURLONG_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(system_files().write_atomic(golden, first->text));
  }
  const auto expected = system_files().read(golden);
  ASSERT_TRUE(expected) << expected.error().text();
  EXPECT_EQ(first->text, *expected);
  EXPECT_EQ(first->file_name, "saxpy.toml");
  EXPECT_EQ(first->entry, "saxpy");
  EXPECT_EQ(first->kernels, (std::vector<std::string>{"saxpy"}));
}

TEST(Init, ReadsACudaKernel) {
  const auto program = round_trip(kSaxpy, "saxpy.cu", "cuda");
  ASSERT_NE(program, nullptr);
  ASSERT_EQ(program->arguments.size(), 4u);
  EXPECT_EQ(program->arguments[0].direction, Direction::in);
  EXPECT_EQ(program->arguments[1].direction, Direction::inout);  // y is read too
  EXPECT_EQ(program->arguments[2].type, ElementType::f32);
  EXPECT_EQ(program->arguments[3].kind, ArgumentKind::scalar);
  const auto& lattice = program->editions[0].lattice;
  ASSERT_EQ(lattice.knobs.size(), 2u);  // VERSION is used nowhere
  EXPECT_EQ(lattice.knobs[0].name, "block_size");
  EXPECT_EQ(program->editions[0].define_names.at(0), "BLOCK_SIZE");
  EXPECT_EQ(lattice.knobs[1].applies, (std::vector<lattice::Applies>{lattice::Applies::rewrite}));
  const auto instance = Instance::make(program, "cuda", {}, {});
  const auto plan = instance->plan(*lattice::parse_variant(lattice, "u8"));
  EXPECT_NE(plan->source.find("#define UNROLL 8\n"), std::string::npos);
}

TEST(Init, ReadsAnOpenClKernelOfTwoDimensions) {
  const auto program = round_trip(R"(
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void transpose(__global const uchar4 *in, __global uint *out, __constant float *table, const unsigned int width, ulong height) {
  size_t x = get_global_id(0), y = get_global_id( 1 );
  out[x * height + y] = table[0] + in[y * width + x].x;
}
kernel void second(global int* p) { p[0] = 1; }
)",
                                  "t.cl", "opencl");
  ASSERT_NE(program, nullptr);
  ASSERT_EQ(program->arguments.size(), 5u);
  EXPECT_EQ(program->arguments[0].type, ElementType::u8);
  EXPECT_EQ(program->arguments[1].direction, Direction::out);
  EXPECT_EQ(program->arguments[2].kind, ArgumentKind::constant);
  EXPECT_EQ(program->arguments[3].type, ElementType::u32);
  EXPECT_EQ(program->arguments[4].type, ElementType::u64);
}

TEST(Init, TwoDimensionsAreFixedOrKnobs) {
  const std::string body =
      "void f(__global float* y, int w, int h) { y[get_global_id(1) * w + get_global_id(0)] = h; }\n";
  const auto fixed =
      round_trip("__kernel __attribute__((reqd_work_group_size(32, 4, 1))) " + body, "f.cl", "opencl");
  EXPECT_TRUE(fixed->editions[0].lattice.knobs.empty());
  EXPECT_EQ(fixed->editions[0].kernels[0].block[1].text(), "4");
  const auto free = round_trip("__kernel " + body, "f.cl", "opencl");
  ASSERT_EQ(free->editions[0].lattice.knobs.size(), 2u);
  EXPECT_EQ(free->editions[0].kernels[0].grid[1].text(), "ceil_div(h, block_y)");
  const auto instance = Instance::make(free, "opencl", {}, {{"device.max_threads", 256}});
  const auto all = instance->select("all");
  EXPECT_EQ(all->size(), 6u);  // of 9, those of at most 256 threads
}

TEST(Init, ReadsAHostKernel) {
  const auto program = round_trip(R"(#include <cmath>
static void helper(float* x) { *x = 1; }
extern "C" void scale(const furlong_block& block, const double* x, double* y, int64_t n) {
  for (unsigned t = 0; t < block.threads_x; ++t) {
    const auto i = block.x * block.threads_x + t;
    if (i < n) y[i] = 2 * x[i];
  }
}
)",
                                  "scale.cpp", "host");
  ASSERT_NE(program, nullptr);
  ASSERT_EQ(program->arguments.size(), 3u);
  EXPECT_EQ(program->arguments[0].type, ElementType::f64);
  EXPECT_EQ(program->arguments[2].type, ElementType::i64);
}

TEST(Init, ReadsATemplate) {
  const auto program = round_trip(R"(
template <typename T, int BLOCK>
__global__ void copy(const T* in, T* out, long long n) { out[threadIdx.x] = in[threadIdx.x]; }
)",
                                  "copy.cu", "cuda");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->editions[0].kernels[0].entry, "copy<float, {block}>");
  const auto instance = Instance::make(program, "cuda", {}, {});
  EXPECT_EQ(instance->plan(*lattice::parse_variant(instance->lattice(), "b64"))->entries,
            (std::vector<std::string>{"copy<float, 64>"}));
}

TEST(Init, NamesWhatItCannotDo) {
  EXPECT_EQ(message(init_program("", "x.py")),
            "'x.py' is no kernel's source by its name: .cu is CUDA, .cl OpenCL, .cpp a host kernel");
  EXPECT_EQ(message(init_program("void f(float* x) {}", "x.cu")),
            "x.cu: there is no kernel (a function marked __global__)");
  EXPECT_EQ(message(init_program(kSaxpy, "x.cu", "sapxy")),
            "x.cu: there is no kernel 'sapxy', did you mean 'saxpy'?");
  EXPECT_EQ(
      message(init_program("__kernel void f(__local float* t, __global float* y) { y[0] = 1; }", "x.cl")),
      "x.cl: parameter 't' of kernel 'f' is local memory, which is no argument of a program: declare the "
      "array inside "
      "the kernel");
  EXPECT_EQ(message(init_program("__kernel void f(__global float* y, image2d_t i) { y[0] = 1; }", "x.cl")),
            "x.cl: parameter 'i' of kernel 'f' has the type 'image2d_t', which a program cannot pass: "
            "numbers and pointers to "
            "numbers can be passed");
  EXPECT_EQ(message(init_program("__global__ void f(const float* y) { }", "x.cu")),
            "x.cu: kernel 'f' writes to no buffer (every pointer is const): there would be nothing to check");
  EXPECT_EQ(message(init_program(kSaxpy, "a/x.cu")), "'a/x.cu' must be the file's own name, without folders");
}

TEST(Init, NamesThatExpressionsCannotUseAreChanged) {
  const auto program = round_trip(
      "#define N 32\n#define in_ 8\n__global__ void f(float* in, int n, int min, int not) { in[N] += in_; "
      "}\n",
      "odd name.cu", "cuda");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->name, "odd_name");
  EXPECT_EQ(program->problem[1].first, "min_");
}

// ---- the reader of kernels

TEST(KernelText, BlanksCommentsButKeepsPlaces) {
  EXPECT_EQ(internal::blank_comments("a // b\nc /* d\ne */ f \"// g\"", false),
            "a     \nc     \n     f \"// g\"");
  EXPECT_EQ(internal::blank_comments("\"x\\\"//\" y", true), "        y");
  EXPECT_EQ(internal::blank_comments("/* open", true), "       ");
}

TEST(KernelText, FindsMacrosWithValues) {
  const auto macros = internal::find_macros(
      "#ifndef A\n#define A 16\n#endif\n# define B (32u)\n#define C(x) 3\n#define D x\n#ifndef "
      "GUARD_H\n#define GUARD_H\nint y = A + A + B;\n");
  ASSERT_EQ(macros.size(), 2u);
  EXPECT_EQ(macros[0].name, "A");
  EXPECT_TRUE(macros[0].guarded);
  EXPECT_EQ(macros[0].uses, 2);
  EXPECT_EQ(macros[1].name, "B");
  EXPECT_EQ(macros[1].value, 32);
  EXPECT_FALSE(macros[1].guarded);
  EXPECT_EQ(macros[1].line, "# define B (32u)");
}

TEST(KernelText, TellsOutputsThatAreOnlyWritten) {
  EXPECT_TRUE(internal::only_written("y[i] = 1; y[f(j)[2]] = x;", "y"));
  EXPECT_FALSE(internal::only_written("y[i] += 1;", "y"));
  EXPECT_FALSE(internal::only_written("y[i] = y[i] + 1;", "y"));
  EXPECT_FALSE(internal::only_written("if (y[i] == 1) y[i] = 2;", "y"));
  EXPECT_FALSE(internal::only_written("g(y);", "y"));
  EXPECT_FALSE(internal::only_written("x[i] = 1;", "y"));
}

}  // namespace
}  // namespace furlong::program
