// The reader of program files: what it makes of a whole file, and what it says of every kind of mistake.
#include <gtest/gtest.h>

#include "furlong/base/random.h"
#include "furlong/program/internal/testing.h"
#include "furlong/program/npy.h"

namespace furlong::program {
namespace {

using testing::kProgram;
using testing::read;
using testing::with;

std::string error_of(std::string_view text) {
  const auto program = read(text);
  return program ? "no error" : program.error().text();
}

// A mistake: what is put in the place of what, and the exact message.
struct Mistake {
  std::string_view from, to, message;
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, HaveFileLineColumnAndCulprit) {
  const Mistake& mistake = GetParam();
  EXPECT_EQ(error_of(with(mistake.from, mistake.to)), mistake.message);
}

INSTANTIATE_TEST_SUITE_P(
    UnknownKeys, Mistakes,
    ::testing::Values(
        Mistake{"grid =", "gird =", "add.toml:18:1: unknown key 'gird' in [launch], did you mean 'grid'?"},
        Mistake{"[problem]", "[problme]",
                "add.toml:10:2: unknown key 'problme' in a program file, did you mean 'problem'?"},
        Mistake{"summary = ", "sumary = ",
                "add.toml:5:1: unknown key 'sumary' in [program], did you mean 'summary'?"},
        Mistake{"size = \"n\"", "length = \"n\"",
                "add.toml:24:1: unknown key 'length' in this [[argument]]; it can be name, kind, type, size, "
                "value, fill, "
                "low, high, seed, file or direction"},
        Mistake{"define = ", "defines = ",
                "add.toml:56:1: unknown key 'defines' in this [[knob]], did you mean 'define'?"},
        Mistake{"reason = ", "why = ",
                "add.toml:60:1: unknown key 'why' in this [[constraint]]; it can be expression, reason or "
                "languages"}));

INSTANTIATE_TEST_SUITE_P(
    Claims, Mistakes,
    ::testing::Values(
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\nclaims = 3",
                "add.toml:57:10: claims of knob 'unroll' must be an array, not an integer"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\nclaims = [{ value = 3, outcome = \"wins\" }]",
                "add.toml:57:21: a claim of knob 'unroll': 3 is none of the knob's values"},
        Mistake{
            "define = \"UNROLL\"", "define = \"UNROLL\"\nclaims = [{ value = 1, outcome = \"wins\" }]",
            "add.toml:57:21: a claim of knob 'unroll': 1 is the default, which the others are compared with"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\nclaims = [{ value = 2, outcome = \"win\" }]",
                "add.toml:57:34: outcome of a claim of knob 'unroll' cannot be 'win', did you mean 'wins'?"},
        Mistake{
            "define = \"UNROLL\"",
            "define = \"UNROLL\"\nclaims = [{ value = 2, outcome = \"wins\", where = \"block > 2\" }]",
            "add.toml:57:51: where of a claim of knob 'unroll': 'block' is neither a feature in [class] nor "
            "a "
            "device fact that race records tell; it can be device.arch, device.backend, device.memory_mib, "
            "device.multiprocessors, device.sm or device.vendor"},
        Mistake{"define = \"UNROLL\"",
                "define = \"UNROLL\"\nclaims = [{ value = 2, outcome = \"wins\", if = 1 }]",
                "add.toml:57:42: unknown key 'if' in a claim of knob 'unroll'; it can be value, outcome or "
                "where"}));

TEST(ProgramFile, ReadsClaims) {
  const auto program = read(with("define = \"UNROLL\"",
                                 "define = \"UNROLL\"\nclaims = [{ value = 2, outcome = \"loses\", where = "
                                 "\"big == 1 and device.sm >= 80\" },\n"
                                 "  { value = 2, outcome = \"ties\" }]") +
                            "\n[class]\nbig = \"n > 4096\"\n");
  ASSERT_TRUE(program) << program.error().text();
  const lattice::Knob* knob = (*program)->editions[0].lattice.knob("unroll");
  ASSERT_NE(knob, nullptr);
  ASSERT_EQ(knob->claims.size(), 2u);
  EXPECT_EQ(knob->claims[0].value, 1u);
  EXPECT_EQ(knob->claims[0].outcome, lattice::ClaimOutcome::loses);
  EXPECT_EQ(knob->claims[0].where, "big == 1 and device.sm >= 80");
  EXPECT_EQ(knob->claims[1].outcome, lattice::ClaimOutcome::ties);
  EXPECT_EQ(knob->claims[1].where, "");
  EXPECT_GT(knob->claims[0].line, 0);
  const auto bare = read(std::string(kProgram) + "\n[class]\nbig = \"n > 4096\"\n");
  ASSERT_TRUE(bare) << bare.error().text();
  EXPECT_EQ((*program)->source_hash(), (*bare)->source_hash()) << "a claim decides nothing that runs";
}

INSTANTIATE_TEST_SUITE_P(
    WrongTypes, Mistakes,
    ::testing::Values(
        Mistake{"name = \"add\"", "name = 3",
                "add.toml:4:8: the program's name must be a string, not an integer"},
        Mistake{"values = [1, 2]", "values = 2",
                "add.toml:55:10: values of knob 'unroll' must be an array, not an integer"},
        Mistake{"values = [1, 2]", "values = [1, 2.5]",
                "add.toml:55:14: each of the values of knob 'unroll' must be an integer, a boolean or a "
                "word, not a number"},
        Mistake{"values = [1, 2]", "values = [1, \"two\"]",
                "add.toml:55:14: values of knob 'unroll': words and numbers cannot be mixed"},
        Mistake{
            "grid = \"ceil_div(n, threads)\"", "grid = { x = 1 }",
            "add.toml:18:8: grid of kernel 'add' must be a number or an expression in quotes, not a table"},
        Mistake{"bound = 1e-6", "bound = \"small\"",
                "add.toml:40:10: bound: 'small' is not defined; it can be block, unroll, n, scale, threads, "
                "device.sm, "
                "device.max_threads, device.warp, device.shared_bytes, device.arch, device.multiprocessors, "
                "device.memory_mib, device.vendor or device.backend"},
        Mistake{"[work]\n", "[[work]]\n", "add.toml:42:1: [work] must be a table, not an array"},
        Mistake{"[[constraint]]", "[constraint]",
                "add.toml:58:1: 'constraint' must be written [[constraint]], once for each"},
        Mistake{"n = 1024", "n = [1]",
                "add.toml:11:5: the problem parameter 'n' must be an integer, a float, a boolean or a word, "
                "not an array"},
        Mistake{"format = 1", "format = \"1\"", "add.toml:1:10: format must be an integer, not a string"}));

INSTANTIATE_TEST_SUITE_P(
    Access, Mistakes,
    ::testing::Values(
        Mistake{"bytes = \"n * 8\"", "bytes = \"n * 8\"\naccess = \"random\"\ndataset = \"n\"",
                "add.toml:46:10: access cannot be 'random', did you mean 'random4'?"},
        Mistake{"bytes = \"n * 8\"", "bytes = \"n * 8\"\naccess = \"random4\"",
                "add.toml:46:1: random access needs 'dataset', the bytes of the region that is read"},
        Mistake{"bytes = \"n * 8\"", "access = \"random4\"\ndataset = \"n\"",
                "add.toml:45:1: random access needs 'bytes', those that are loaded"},
        Mistake{"bytes = \"n * 8\"", "bytes = \"n * 8\"\ndataset = \"n\"",
                "add.toml:46:1: 'dataset' is for random access (access = \"random4\")"},
        Mistake{"bytes = \"n * 8\"", "access = \"stream\"\nloads = { random4 = \"n\" }\ndataset = \"n\"",
                "add.toml:45:1: [work] has either 'access' or 'loads'"},
        Mistake{"bytes = \"n * 8\"", "loads = { random8 = \"n\" }\ndataset = \"n\"",
                "add.toml:45:11: unknown key 'random8' in loads of [work], did you mean 'random4'?"},
        Mistake{"bytes = \"n * 8\"", "loads = { random4 = \"m\" }\ndataset = \"n\"",
                "add.toml:45:22: random4 of loads: 'm' is not defined; it can be block, unroll, n, scale, "
                "threads, "
                "device.sm, "
                "device.max_threads, device.warp, device.shared_bytes, device.arch, device.multiprocessors, "
                "device.memory_mib, device.vendor or device.backend"}));

INSTANTIATE_TEST_SUITE_P(
    Names, Mistakes,
    ::testing::Values(
        Mistake{"ceil_div(n, threads)", "ceil_div(n, thread)",
                "add.toml:18:21: grid of kernel 'add': 'thread' is not defined, did you mean 'threads'?"},
        Mistake{"\"block * 2\"", "\"blok * 2\"",
                "add.toml:15:12: [let] 'threads': 'blok' is not defined, did you mean 'block'?"},
        Mistake{"device.max_threads", "device.max_thread",
                "add.toml:59:26: constraint: 'device.max_thread' is not defined, did you mean "
                "'device.max_threads'?"},
        Mistake{"amount = \"n\"", "amount = \"m\"",
                "add.toml:44:11: amount: 'm' is not defined; it can be block, unroll, n, scale, threads, "
                "device.sm, "
                "device.max_threads, device.warp, device.shared_bytes, device.arch, device.multiprocessors, "
                "device.memory_mib, device.vendor or device.backend"},
        Mistake{"size = \"n\"", "size = \"n * threads\"",
                "add.toml:24:13: size of argument 'a' must be the same for every variant, but it uses "
                "'threads', which uses "
                "knob 'block'"},
        Mistake{"threads = \"block * 2\"", "threads = \"a + block\"\na = \"b * 2\"\nb = \"1 + c\"\nc = \"a\"",
                "add.toml:16:1: [let] goes in a circle: a -> b -> c -> a"},
        Mistake{"threads = \"block * 2\"", "threads = \"threads + 1\"",
                "add.toml:15:1: [let] goes in a circle: threads -> threads"},
        Mistake{"name = \"unroll\"", "name = \"n\"", "add.toml:54:8: 'n' is a problem parameter already"},
        Mistake{"name = \"unroll\"", "name = \"block\"", "add.toml:54:8: 'block' is a knob already"},
        Mistake{"name = \"unroll\"", "name = \"min\"",
                "add.toml:54:8: the knob's name 'min' is a word of the expression language; choose another"},
        Mistake{"name = \"b\"", "name = \"a\"", "add.toml:27:8: there are two arguments 'a'"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, Mistakes,
    ::testing::Values(
        Mistake{"\"ceil_div(n, threads)\"", "\"ceil_div(n, threads\"",
                "add.toml:18:28: grid of kernel 'add': the expression ends where ')' or ',' should stand"},
        Mistake{"grid = \"ceil_div(n, threads)\"", "grid = []",
                "add.toml:18:8: grid of kernel 'add' must have 1 to 3 dimensions, not 0"}));

INSTANTIATE_TEST_SUITE_P(
    Knobs, Mistakes,
    ::testing::Values(
        Mistake{"values = [1, 2]", "values = [1]",
                "add.toml:55:10: values of knob 'unroll': a knob has at least two; one that has no choice "
                "belongs into the source"},
        Mistake{"values = [1, 2]", "values = [1, 1]",
                "add.toml:55:14: values of knob 'unroll': 1 stands twice"},
        Mistake{"default = 64", "default = 65",
                "add.toml:50:11: default of knob 'block': 65 is none of its values (32, 64, 128)"},
        Mistake{"applies = \"launch\"", "applies = \"luanch\"",
                "add.toml:51:11: applies of knob 'block' cannot be 'luanch', did you mean 'launch'?"},
        Mistake{"applies = \"launch\"", "applies = \"option\"",
                "add.toml:47:1: knob 'block' applies as option and needs the key 'option'"},
        Mistake{"define = \"UNROLL\"", "applies = \"launch\"",
                "add.toml:53:1: knob 'unroll' applies to the launch, but no grid, block, shared_bytes, "
                "entry, size or value uses it"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\ntags = [\"a\", \"\"]",
                "add.toml:57:9: tags of knob 'unroll': the default's tag must be \"\", not 'a'"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\ntags = [\"\", \"a-b\"]",
                "add.toml:57:8: tags of knob 'unroll': 'a-b' for 2 must be letters, digits, '_', '.' and "
                "'+', and not a word such as 'base'"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\ntags = [\"\", \"b32\"]",
                "add.toml:53:1: the tag 'b32' is used by knob 'block' and knob 'unroll': give one of them "
                "other tags = [...]"},
        Mistake{"define = \"UNROLL\"", "define = \"UNROLL\"\nlossy = [1]",
                "add.toml:57:10: lossy of knob 'unroll': the default cannot be lossy; base must be right for "
                "everybody"},
        Mistake{"define = \"UNROLL\"", "applies = \"emit\"",
                "add.toml:56:11: knob 'unroll': 'emit' is for programs with an emitter; a source "
                "takes its knobs by define, option, launch or rewrite"},
        Mistake{"define = \"UNROLL\"", "coupled = [\"blok\"]",
                "add.toml:53:1: coupled of knob 'unroll': 'blok' is no other knob, did you mean 'block'?"}));

INSTANTIATE_TEST_SUITE_P(
    Arguments, Mistakes,
    ::testing::Values(
        Mistake{
            "direction = \"out\"", "direction = \"in\"",
            "add.toml:21:1: no argument has direction \"out\" or \"inout\": there would be nothing to check"},
        Mistake{"direction = \"out\"", "direction = \"out\"\nfill = \"zeros\"",
                "add.toml:31:8: argument 'b': what an output or scratch held before is poisoned; direction = "
                "\"inout\" keeps a fill"},
        Mistake{"type = \"i32\"", "type = \"int\"",
                "add.toml:35:8: type of argument 'n' cannot be 'int'; it can be i8, u8, i16, u16, i32, u32, "
                "i64, u64, f16, f32 or f64"},
        Mistake{"value = \"n\"", "value = \"n\"\nsize = 3",
                "add.toml:37:1: argument 'n': 'size' is for buffers; a scalar has 'value'"},
        Mistake{"kind = \"scalar\"", "kind = \"dataset\"",
                "add.toml:34:8: argument 'n': a dataset comes with a built-in recipe (the lottery); use kind "
                "= \"buffer\" with "
                "fill = \"file\" or \"random\""},
        Mistake{"size = \"n\"", "size = \"n\"\nlow = 2.0",
                "add.toml:25:7: argument 'a': low (2) is over high (1)"},
        Mistake{"size = \"n\"", "size = \"n\"\nhigh = 1e39",
                "add.toml:25:8: argument 'a': 1e+39 does not fit the type f32"},
        Mistake{"size = \"n\"", "size = \"n\"\nlow = -1e39",
                "add.toml:25:7: argument 'a': -1e+39 does not fit the type f32"},
        Mistake{"type = \"f32\"\nsize = \"n\"", "type = \"f16\"\nsize = \"n\"\nhigh = 65520",
                "add.toml:25:8: argument 'a': 65520 does not fit the type f16"}));

INSTANTIATE_TEST_SUITE_P(
    Checks, Mistakes,
    ::testing::Values(
        Mistake{"bound = 1e-6", "bound = 1", "add.toml:40:9: bound must be over 0 and under 1"},
        Mistake{"kind = \"tolerance\"\n", "", "add.toml:39:1: 'bound' is for kind = \"tolerance\""},
        Mistake{"bound = 1e-6", "bound = 1e-6\nreference = \"bass\"",
                "add.toml:41:13: the reference cannot be 'bass', did you mean 'base'?"},
        Mistake{"bound = 1e-6", "bound = 1e-6\nreference = \"host:x.cpp\"",
                "add.toml:41:13: the reference must be \"host:FILE:FUNCTION\""},
        Mistake{"bound = 1e-6", "bound = 1e-6\nproblem = { m = 3 }",
                "add.toml:41:13: problem of [check]: 'm' is no problem parameter; it can be n or scale"},
        Mistake{"bound = 1e-6", "bound = 1e-6\nreference = \"files\"",
                "add.toml:21:1: argument 'a' is filled at random, but the expected outputs are files: fill "
                "it from a file, or with zeros, sequence or value"}));

TEST(ProgramFile, ReadsTheWholeFile) {
  const auto program = read(kProgram);
  ASSERT_TRUE(program) << program.error().text();
  const Program& p = **program;
  EXPECT_EQ(p.name, "add");
  ASSERT_EQ(p.problem.size(), 2u);
  EXPECT_EQ(p.problem[1].first, "scale");
  ASSERT_EQ(p.arguments.size(), 3u);
  EXPECT_EQ(p.arguments[0].direction, Direction::in);
  EXPECT_EQ(p.arguments[0].fill, Fill::random);
  EXPECT_EQ(p.arguments[1].fill, Fill::poison);
  EXPECT_EQ(p.arguments[2].kind, ArgumentKind::scalar);
  ASSERT_EQ(p.editions.size(), 1u);
  const Edition& e = p.editions[0];
  EXPECT_EQ(e.source, testing::kSource);
  ASSERT_EQ(e.kernels.size(), 1u);
  EXPECT_EQ(e.kernels[0].arguments, (std::vector<std::size_t>{0, 1, 2}));
  ASSERT_EQ(e.lattice.knobs.size(), 2u);
  EXPECT_EQ(e.lattice.knobs[0].tags, (std::vector<std::string>{"b32", "", "b128"}));
  EXPECT_EQ(e.define_names.at(1), "UNROLL");
  // The lattice knows no [let]: it is put in.
  ASSERT_EQ(e.lattice.constraints.size(), 1u);
  EXPECT_EQ(e.lattice.constraints[0].expression.text(), "(block * 2) <= device.max_threads");
  EXPECT_EQ(p.work.rate_unit, "element/s");
  EXPECT_EQ(p.check.kind, CheckKind::tolerance);
}

TEST(ProgramFile, RefusesAnotherFormat) {
  const auto program = read(with("format = 1", "format = 2"));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::incompatible);
  EXPECT_EQ(program.error().text(), "add.toml:1:10: found program file format 2, expected 1");
  EXPECT_EQ(error_of(with("format = 1\n", "")),
            "add.toml:1:1: the file does not begin with its format: write format = 1 at the top");
}

TEST(ProgramFile, NamesAMissingSource) {
  FakeFiles files;
  const auto program = parse_program(kProgram, "add.toml", "/nowhere", files);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::invalid);
  EXPECT_EQ(program.error().text().substr(0, 45), "add.toml:7:10: the source cannot be read: /no");
}

TEST(ProgramFile, SeveralLanguagesEachHaveTheirKnobsAndLaunch) {
  const auto program = read(R"(format = 1
[program]
name = "two"
[source.opencl]
file = "add.cl"
entry = "add"
[source.host]
text = "void add(const furlong_block&, float*) {}"
entry = "add"
[launch]
grid = 4
block = "block"
[launch.host]
block = 1
[[argument]]
name = "x"
type = "f32"
size = 4
direction = "inout"
[[knob]]
name = "block"
values = [64, 128]
applies = "launch"
languages = ["opencl"]
[[knob]]
name = "level"
values = [2, 3]
applies = "option"
option = "-O{}"
languages = ["host"]
[catalogue]
opencl = ["b128"]
)");
  ASSERT_TRUE(program) << program.error().text();
  const Edition& opencl = *(*program)->edition("opencl");
  const Edition& host = *(*program)->edition("host");
  EXPECT_EQ(opencl.lattice.catalogue, (std::vector<std::string>{"base", "b128"}));
  EXPECT_TRUE(host.lattice.catalogue.empty());
  ASSERT_EQ(host.lattice.knobs.size(), 1u);
  EXPECT_EQ(host.lattice.knobs[0].options.at(1), "-O3");
  EXPECT_EQ(host.kernels[0].block[0].text(), "1");
  EXPECT_EQ(opencl.kernels[0].block[0].text(), "block");
}

TEST(ProgramFile, AKnobOfAnotherLanguageIsNamed) {
  EXPECT_EQ(error_of(with("applies = \"launch\"", "applies = \"launch\"\nlanguages = [\"cuda\"]")),
            "add.toml:52:13: languages of knob 'block': the program has no source in 'cuda'");
}

TEST(ProgramFile, ReadsHeadersBesideTheSourceAndInIncludeFolders) {
  FakeFiles files;
  ASSERT_TRUE(files.write_atomic("/p/near.h", "#include <far.h>\n"));
  ASSERT_TRUE(files.write_atomic("/p/inc/far.h", "int x;\n"));
  ASSERT_TRUE(files.write_atomic("/p/k.cl", "#include \"near.h\"\n#include <stdint.h>\n// no kernel\n"));
  const auto program = read(with("source = \"add.cl\"", "source = \"k.cl\"\ninclude = \"inc\""), files);
  ASSERT_TRUE(program) << program.error().text();
  const auto& headers = (*program)->editions[0].headers;
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].file, "/p/near.h");
  EXPECT_EQ(headers[1].text, "int x;\n");
  // A changed header is another program.
  ASSERT_TRUE(files.write_atomic("/p/inc/far.h", "int y;\n"));
  const auto other = read(with("source = \"add.cl\"", "source = \"k.cl\"\ninclude = \"inc\""), files);
  ASSERT_TRUE(other);
  EXPECT_NE((*program)->source_hash(), (*other)->source_hash());
}

TEST(ProgramFile, ReadsDataFilesAndChecksTheirType) {
  FakeFiles files;
  const std::vector<std::uint64_t> shape = {2};
  const Bytes npy = *write_npy(ElementType::f64, shape, Bytes(16));
  ASSERT_TRUE(files.write_atomic("/p/a.npy", as_text(npy)));
  const std::string missing = error_of(with("size = \"n\"", "size = \"n\"\nfile = \"a.npy\""));
  EXPECT_TRUE(missing.starts_with("add.toml:25:8: /p/a.npy: ")) << missing;
  const auto wrong = read(with("size = \"n\"", "size = \"n\"\nfile = \"a.npy\""), files);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text(),
            "add.toml:25:8: argument 'a': the file has elements of type f64, the argument f32");
  const Bytes good = *write_npy(ElementType::f32, shape, Bytes(8));
  ASSERT_TRUE(files.write_atomic("/p/a.npy", as_text(good)));
  const auto program = read(with("size = \"n\"", "size = \"n\"\nfile = \"a.npy\""), files);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ((*program)->arguments[0].fill, Fill::file);
  EXPECT_EQ((*program)->arguments[0].data->bytes.size(), 8u);
}

TEST(ProgramFile, ACheckCannotChangeWhatIsCompiledIn) {
  EXPECT_EQ(error_of(with("entry = \"add\"", "entry = \"add\"\ndefines = { N = \"{n}\" }\n")), "no error");
  std::string text = with("entry = \"add\"", "entry = \"add\"\ndefines = { N = \"{n}\" }\n");
  text.replace(text.find("bound = 1e-6"), 12, "bound = 1e-6\nproblem = { n = 8 }");
  EXPECT_EQ(error_of(text),
            "add.toml:43:13: the check cannot change 'n': it is compiled into the opencl kernel ('{n}')");
}

TEST(ProgramFile, LetsThatDoubleAtEveryStepEndInAnError) {
  std::string lets = "x0 = \"n + n\"\n";
  for (int i = 1; i < 40; ++i) lets += fmt::format("x{} = \"x{} + x{}\"\n", i, i - 1, i - 1);
  lets += "threads = \"x39 + block\"";
  EXPECT_EQ(error_of(with("threads = \"block * 2\"", lets)),
            "add.toml:99:14: constraint is too long once [let] 'x11' is put in");
}

TEST(ProgramFile, TheHashSeesEveryPartThatDecidesWhatRuns) {
  const Digest digest = (*read(kProgram))->source_hash();
  EXPECT_EQ((*read(kProgram))->source_hash(), digest);
  for (const auto& [from, to] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"n = 1024", "n = 1025"},
           {"block * 2", "block * 1"},
           {"\"ceil_div(n, threads)\"", "\"ceil_div(n, 2)\""},
           {"size = \"n\"", "size = \"n + 1\""},
           {"default = 64", "default = 32"},
           {"define = \"UNROLL\"", "define = \"UNROLLED\""},
           {"threads <= device", "threads < device"}}) {
    const auto changed = read(with(from, to));
    ASSERT_TRUE(changed) << changed.error().text();
    EXPECT_NE((*changed)->source_hash(), digest) << from;
  }
  const auto same = read(with("summary = \"adds\"", "summary = \"another sentence\""));
  EXPECT_EQ((*same)->source_hash(), digest);
}

// The example of the page is a program file.
TEST(ProgramFile, ThePagesExampleReads) {
  const auto page = system_files().read("docs/formats/program.md");
  ASSERT_TRUE(page) << page.error().text();
  const std::size_t start = page->find("```toml\n");
  ASSERT_NE(start, std::string::npos);
  const std::size_t end = page->find("```", start + 8);
  FakeFiles files;
  for (const char* name : {"saxpy.cu", "saxpy.cl", "saxpy.cpp", "saxpy_reference.cpp"})
    ASSERT_TRUE(files.write_atomic(std::string("/p/") + name, "void saxpy() {}\n"));
  const auto program = parse_program(page->substr(start + 8, end - start - 8), "program.md", "/p", files);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ((*program)->editions.size(), 3u);
  EXPECT_EQ((*program)->edition("cuda")->lattice.catalogue.size(), 4u);
  EXPECT_TRUE((*program)->edition("host")->lattice.knobs.empty());
}

// A fuzzer that starts from files with errors would only ever test the first key.
TEST(ProgramFile, TheFuzzersSeedsRead) {
  for (const char* name : {"add.toml", "pipeline.toml"}) {
    const auto text = system_files().read(std::string("furlong/program/program_file_fuzz/") + name);
    ASSERT_TRUE(text) << text.error().text();
    const auto program = read(*text);
    EXPECT_TRUE(program) << program.error().text();
  }
}

// Whatever is cut out or doubled: an error with a place, or a program; never a crash.
TEST(ProgramFile, SurvivesRandomDamage) {
  Random random(11);
  const std::string text(kProgram);
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = text;
    const std::size_t at = random.below(damaged.size());
    const std::size_t length = 1 + random.below(20);
    if (round % 2 == 0)
      damaged.erase(at, length);
    else
      damaged.insert(at, text.substr(random.below(text.size()), length));
    const auto program = read(damaged);
    if (program) continue;
    ++errors;
    EXPECT_TRUE(program.error().code() == Code::invalid || program.error().code() == Code::incompatible)
        << program.error().text();
    EXPECT_TRUE(program.error().text().starts_with("add.toml:")) << program.error().text();
  }
  EXPECT_GT(errors, 200);
}

}  // namespace
}  // namespace furlong::program
