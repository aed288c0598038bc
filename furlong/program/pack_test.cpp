// Packs: frozen, written, verified, signed; every kind of damage must be seen.
#include "furlong/program/pack.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "furlong/program/instance.h"
#include "furlong/program/internal/pack_files.h"
#include "furlong/program/internal/testing.h"
#include "furlong/program/lottery/lottery.h"
#include "furlong/program/npy.h"

namespace furlong::program {
namespace {

namespace fs = std::filesystem;
using testing::with;

template <class T>
std::string message(const Result<T>& result) {
  return result ? "no error" : result.error().text();
}

KeyPair key_of(std::uint8_t seed) { return *KeyPair::from_seed(Bytes(32, seed)); }

// A folder on disk with the small program in it, and its configuration folder beside.
class PackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("furlong-pack-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(*std::move(made));
    ::setenv("FURLONG_CONFIG_DIR", (root() / "config").c_str(), 1);
    put("program/add.toml", testing::kProgram);
    put("program/add.cl", testing::kSource);
  }
  void TearDown() override { ::unsetenv("FURLONG_CONFIG_DIR"); }

  const fs::path& root() const { return folder_->path(); }
  void put(const std::string& name, std::string_view text) const {
    ASSERT_TRUE(system_files().write_atomic(root() / name, text));
  }
  std::string get(const std::string& name) const { return *system_files().read(root() / name); }

  PackContents frozen(const std::string& file = "program/add.toml") const {
    const auto program = load_program_file(root() / file);
    EXPECT_TRUE(program) << program.error().text();
    auto pack = freeze_program(**program);
    EXPECT_TRUE(pack) << pack.error().text();
    return pack ? *std::move(pack) : PackContents();
  }
  void write(const PackContents& pack) const {
    const Status written = write_pack(pack, root() / "pack");
    ASSERT_TRUE(written) << written.error().text();
  }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(PackTest, AFrozenProgramIsTheSameProgram) {
  const PackContents pack = frozen();
  ASSERT_EQ(pack.files.size(), 3u);
  EXPECT_TRUE(pack.files.contains("add.toml") && pack.files.contains("add.cl") &&
              pack.files.contains("pack.toml"));
  EXPECT_EQ(frozen().files, pack.files);  // same inputs, same bytes
  write(pack);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_TRUE(loaded) << loaded.error().text();
  const auto original = load_program_file(root() / "program/add.toml");
  EXPECT_EQ((*loaded)->source_hash(), (*original)->source_hash());
  EXPECT_TRUE((*original)->trusted);
  EXPECT_FALSE((*loaded)->trusted);
  EXPECT_EQ((*loaded)->file, root() / "pack");
  const auto files = read_pack(root() / "pack");
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_EQ(files->files, pack.files);
}

TEST_F(PackTest, ThePackFileIsThisText) {
  const PackContents pack = frozen();
  EXPECT_EQ(pack.files.at("pack.toml"),
            fmt::format("format = 1\nkind = \"program\"\ncontent = \"{}\"\n\n[program]\nname = \"add\"\nfile "
                        "= \"add.toml\"\n"
                        "\n[files]\n\"add.cl\" = \"{}\"\n\"add.toml\" = \"{}\"\n",
                        pack_hash(pack).hex(), blake2b_256(testing::kSource).hex(),
                        blake2b_256(testing::kProgram).hex()));
}

// The heart of the matter: no byte of no file can change unseen.
TEST_F(PackTest, EveryFlippedByteOfEveryFileIsSeen) {
  const PackContents pack = frozen();
  for (const auto& [name, bytes] : pack.files) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int bit : {0, 5}) {  // 5 turns small letters into capitals
        PackContents damaged = pack;
        damaged.files[name][at] = static_cast<char>(damaged.files[name][at] ^ (1 << bit));
        const auto verified = verify_contents(damaged, "p");
        ASSERT_FALSE(verified) << name << " byte " << at << " bit " << bit;
        ASSERT_TRUE(verified.error().code() == Code::corrupt ||
                    verified.error().code() == Code::incompatible || verified.error().code() == Code::denied)
            << verified.error().text();
        ASSERT_TRUE(verified.error().text().starts_with("p/")) << verified.error().text();
        if (name == "pack.toml") continue;
        ASSERT_TRUE(verified.error().text().starts_with("p/" + name + ": the file is damaged"))
            << verified.error().text();
      }
    }
  }
}

TEST_F(PackTest, EveryTornPackFileIsSeen) {
  const PackContents pack = frozen();
  const std::string& text = pack.files.at("pack.toml");
  for (std::size_t length = 0; length < text.size(); ++length) {
    PackContents torn = pack;
    torn.files["pack.toml"] = text.substr(0, length);
    ASSERT_FALSE(verify_contents(torn, "p")) << length;
  }
  PackContents longer = pack;
  longer.files["pack.toml"] += "\n";
  EXPECT_FALSE(verify_contents(longer, "p"));
}

TEST_F(PackTest, MissingAndForeignFilesAreNamed) {
  write(frozen());
  fs::remove(root() / "pack/add.cl");
  const auto missing = load_pack(root() / "pack");
  ASSERT_FALSE(missing);
  EXPECT_FALSE(read_pack(root() / "pack"));
  EXPECT_EQ(missing.error().code(), Code::corrupt);
  EXPECT_EQ(missing.error().text(),
            (root() / "pack").string() + "/add.cl: the file is missing; pack.toml lists it");
  put("pack/add.cl", testing::kSource);
  ASSERT_TRUE(load_pack(root() / "pack"));
  put("pack/deeper/evil.h", "int x;\n");
  EXPECT_EQ(message(load_pack(root() / "pack")),
            (root() / "pack").string() + "/deeper/evil.h: a foreign file: pack.toml does not list it");
  EXPECT_EQ(message(load_pack(root() / "program")),
            (root() / "program").string() + ": there is no pack.toml: this folder is no pack");
}

TEST_F(PackTest, ADamagedFileOnDiskIsNamedBeforeItIsRead) {
  write(frozen());
  std::string source = get("pack/add.toml");
  source.back() = ' ';
  put("pack/add.toml", source);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::corrupt);
  EXPECT_TRUE(
      loaded.error().text().starts_with((root() / "pack").string() + "/add.toml: the file is damaged"))
      << loaded.error().text();
}

TEST_F(PackTest, SymbolicLinksAreRefused) {
  write(frozen());
  fs::remove(root() / "pack/add.cl");
  fs::create_symlink(root() / "program/add.cl", root() / "pack/add.cl");  // the same bytes, by a link
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::denied);
  EXPECT_EQ(loaded.error().text(), (root() / "pack/add.cl").string() + ": a pack holds no symbolic links");
  fs::remove(root() / "pack/add.cl");
  put("pack/add.cl", testing::kSource);
  fs::create_directory_symlink(root() / "program", root() / "pack/sub");
  EXPECT_FALSE(load_pack(root() / "pack"));
}

// Opening a pipe would wait for a writer that never comes, and /dev/zero has no end.
TEST_F(PackTest, PipesAreRefusedAndNotWaitedFor) {
  write(frozen());
  fs::remove(root() / "pack/add.cl");
  ASSERT_EQ(::mkfifo((root() / "pack/add.cl").c_str(), 0600), 0);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::denied);
  EXPECT_EQ(loaded.error().text(),
            (root() / "pack/add.cl").string() + ": a pack holds only files and folders, no pipes or devices");
}

// The files are sparse: they take no room on the disk, and would take all of the memory.
TEST_F(PackTest, APackThatMemoryCannotHoldIsRefusedUnread) {
  write(frozen());
  fs::resize_file(root() / "pack/add.cl", std::uintmax_t{1} << 40);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::exhausted);
  EXPECT_NE(loaded.error().text().find("a pack of more than"), std::string::npos) << loaded.error().text();
}

/// The real files, and which of them were taken into memory or hashed.
class WatchedFiles : public Files {
 public:
  Result<std::string> read(const fs::path& path, std::size_t max_bytes) override {
    touched += fmt::format("read {}\n", path.filename().string());
    return system_files().read(path, max_bytes);
  }
  Result<Digest> hash(const fs::path& path, std::size_t max_bytes) override {
    touched += fmt::format("hash {}\n", path.filename().string());
    return system_files().hash(path, max_bytes);
  }
  Status write_atomic(const fs::path& path, std::string_view bytes) override {
    return system_files().write_atomic(path, bytes);
  }
  bool exists(const fs::path& path) override { return system_files().exists(path); }
  Result<std::vector<std::string>> list(const fs::path& folder) override {
    return system_files().list(folder);
  }
  Status remove(const fs::path& path) override { return system_files().remove(path); }
  std::string touched;
};

TEST_F(PackTest, ALargeFileThatIsNotAsListedNeverTakesMemory) {
  write(frozen());
  fs::resize_file(root() / "pack/add.cl", 100 << 20);
  WatchedFiles files;
  const auto loaded = load_pack(root() / "pack", files);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::corrupt);
  EXPECT_TRUE(loaded.error().text().starts_with((root() / "pack").string() + "/add.cl: the file is damaged"))
      << loaded.error().text();
  EXPECT_EQ(files.touched, "read pack.toml\nhash add.cl\n");
}

TEST_F(PackTest, WhatIsNotListedIsNotEvenRead) {
  write(frozen());
  put("pack/huge", "");
  fs::resize_file(root() / "pack/huge", std::uintmax_t{1} << 40);
  WatchedFiles files;
  EXPECT_EQ(message(load_pack(root() / "pack", files)),
            (root() / "pack").string() + "/huge: a foreign file: pack.toml does not list it");
  EXPECT_EQ(files.touched, "read pack.toml\n");
  fs::remove(root() / "pack/huge");
  for (const char* name : {"pack.toml", "pack.sig"}) {
    put(std::string("pack/") + name, "");
    fs::resize_file(root() / "pack" / name, std::uintmax_t{1} << 40);
    const auto loaded = load_pack(root() / "pack");
    ASSERT_FALSE(loaded) << name;
    EXPECT_EQ(loaded.error().code(), Code::invalid) << loaded.error().text();
    EXPECT_NE(loaded.error().text().find(name), std::string::npos) << loaded.error().text();
    fs::remove_all(root() / "pack");
    write(frozen());
  }
}

TEST_F(PackTest, ALargeFileThatIsAsListedIsUsed) {
  PackContents pack = frozen();
  pack.files["data.bin"] = std::string(17 << 20, 'd');
  ASSERT_TRUE(seal_pack(pack, "program", "[program]\nfile = \"add.toml\"\n"));
  write(pack);
  const auto loaded = load_pack(root() / "pack");
  EXPECT_TRUE(loaded) << loaded.error().text();
  std::string damaged = pack.files["data.bin"];
  damaged.back() = 'e';
  put("pack/data.bin", damaged);
  EXPECT_TRUE(message(load_pack(root() / "pack")).starts_with((root() / "pack").string() + "/data.bin: "));
}

// A pack whose hashes hold, made by someone who wants another file read.
TEST_F(PackTest, PathsOutOfThePackAreRefused) {
  put("secret.cl", testing::kSource);
  for (const std::string path : {"../secret.cl", "/etc/hostname", "x/../../secret.cl"}) {
    PackContents pack;
    pack.files["add.toml"] = with("source = \"add.cl\"", "source = \"" + path + "\"");
    ASSERT_TRUE(seal_pack(pack, "program", "[program]\nfile = \"add.toml\"\n"));
    fs::remove_all(root() / "pack");
    write(pack);
    const std::string error = message(load_pack(root() / "pack"));
    EXPECT_NE(error.find("is outside the pack"), std::string::npos) << error;
  }
  PackContents pack;
  pack.files["add.cl"] = testing::kSource;
  pack.files["add.toml"] = with("source = \"add.cl\"", "source = \"add.cl\"\ninclude = \"/usr/include\"");
  ASSERT_TRUE(seal_pack(pack, "program", "[program]\nfile = \"add.toml\"\n"));
  fs::remove_all(root() / "pack");
  write(pack);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::denied);
  EXPECT_NE(loaded.error().text().find("the include folder '/usr/include' is outside the pack"),
            std::string::npos);
}

TEST_F(PackTest, NamesThatCouldEscapeCannotBePacked) {
  for (const std::string_view name : {"../x", "/x", "a//b", "a/./b", "", "a b", "a\\b", "pack.sig", "a\nb"}) {
    PackContents pack;
    pack.files[std::string(name)] = "x";
    EXPECT_FALSE(seal_pack(pack, "program")) << name;
  }
  PackContents pack = frozen();
  std::string& text = pack.files["pack.toml"];
  text.replace(text.find("\"add.cl\""), 8, "\"../add.cl\"");
  EXPECT_EQ(verify_contents(pack, "p").error().code(), Code::denied);
}

TEST_F(PackTest, AnotherFormatOrKindIsIncompatible) {
  PackContents pack = frozen();
  std::string& text = pack.files["pack.toml"];
  text.replace(text.find("format = 1"), 10, "format = 2");
  EXPECT_EQ(message(verify_contents(pack, "p")), "p/pack.toml:1:10: found pack format 2, expected 1");
  PackContents other = frozen();
  ASSERT_TRUE(seal_pack(other, "puzzle"));
  write(other);
  EXPECT_EQ(
      message(load_pack(root() / "pack")),
      (root() / "pack").string() + "/pack.toml: found a pack of kind 'puzzle', expected program or lottery");
}

TEST_F(PackTest, HeadersDataAndReferencesComeAlong) {
  const std::vector<std::uint64_t> shape = {1024};
  const Bytes npy = *write_npy(ElementType::f32, shape, Bytes(4096, 1));
  put("common/scale.h", "#define SCALE 2\n");
  put("program/near.h", "#include \"../common/scale.h\"\n");
  put("program/inc/far.h", "int far;\n");
  put("program/add.cl", "#include \"near.h\"\n#include <far.h>\n" + std::string(testing::kSource));
  put("program/reference.cpp", "#include \"inc/far.h\"\nvoid reference() {}\n");
  put("data/a.npy", as_text(npy));
  std::string text = with("source = \"add.cl\"", "source = \"add.cl\"\ninclude = \"inc\"");
  text.replace(text.find("size = \"n\""), 10,
               "size = \"n\"\nfile = \"" + (root() / "data/a.npy").string() + "\"  # absolute");
  text.replace(text.find("bound = 1e-6"), 12, "bound = 1e-6\nreference = \"host:reference.cpp:reference\"");
  put("program/add.toml", text);
  const PackContents pack = frozen();
  std::vector<std::string> names;
  for (const auto& [name, bytes] : pack.files) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"common/scale.h", "files/a.npy", "pack.toml", "program/add.cl",
                                             "program/add.toml", "program/inc/far.h", "program/near.h",
                                             "program/reference.cpp"}));
  EXPECT_NE(pack.files.at("program/add.toml").find("file = \"../files/a.npy\"  # absolute"),
            std::string::npos);
  write(pack);
  fs::remove_all(root() / "program");  // the pack stands alone
  fs::remove_all(root() / "common");
  fs::remove_all(root() / "data");
  const auto loaded = load_pack(root() / "pack");
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ((*loaded)->arguments[0].data->bytes, Bytes(4096, 1));
  EXPECT_EQ((*loaded)->editions[0].headers.size(), 3u);
  EXPECT_TRUE(Instance::make(*loaded, "opencl", {}, {})->timed_inputs(1, {}));
}

TEST_F(PackTest, WhatCannotBePackedIsNamed) {
  put("program/add.toml",
      with("source = \"add.cl\"", "source = \"add.cl\"\ninclude = [\"inc\", \"/usr/include\"]"));
  const auto program = load_program_file(root() / "program/add.toml");
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(message(freeze_program(**program)), (root() / "program/add.toml").string() +
                                                    ":8:19: the include folder '/usr/include' is absolute "
                                                    "and cannot be packed: a pack carries its own headers; "
                                                    "give a path relative to the program file");
  const auto in_memory = testing::read(testing::kProgram);
  EXPECT_EQ(message(freeze_program(**in_memory)),
            "program 'add' was not read from a program file, so there is nothing to pack");
}

TEST_F(PackTest, AFileThatChangedWhilePackingIsSeen) {
  const auto program = load_program_file(root() / "program/add.toml");
  ASSERT_TRUE(program);
  put("program/add.cl", "// another\n");
  const std::string error = message(freeze_program(**program));
  EXPECT_NE(error.find("changed while it was packed"), std::string::npos) << error;
}

TEST_F(PackTest, WritingIsAllOrNothing) {
  const PackContents pack = frozen();
  write(pack);
  write(pack);  // the same bytes: left alone
  put("program/add.cl", std::string(testing::kSource) + "\n");
  const PackContents other = frozen();
  const Status refused = write_pack(other, root() / "pack");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid);
  EXPECT_EQ(get("pack/add.cl"), testing::kSource);
  ASSERT_TRUE(write_pack(other, root() / "pack", true));
  EXPECT_EQ(get("pack/add.cl"), std::string(testing::kSource) + "\n");
  EXPECT_TRUE(load_pack(root() / "pack"));
  // Nothing is left beside it.
  std::vector<std::string> names = *system_files().list(root());
  EXPECT_EQ(names, (std::vector<std::string>{"pack/", "program/"}));
  // A pack that does not verify is not written.
  PackContents broken = pack;
  broken.files["add.cl"] += "x";
  EXPECT_FALSE(write_pack(broken, root() / "broken"));
  EXPECT_FALSE(fs::exists(root() / "broken"));
}

// What is asked to be replaced is a pack and nothing else: a folder of somebody's work does not go for one.
TEST_F(PackTest, OnlyAPackIsReplacedByAPack) {
  const PackContents pack = frozen();
  put("work/thesis.tex", "years");
  put("file", "a file");
  for (const char* name : {"work", "file"}) {
    const Status refused = write_pack(pack, root() / name, true);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), Code::invalid);
    EXPECT_NE(refused.error().text().find("is no pack's folder"), std::string::npos)
        << refused.error().text();
  }
  EXPECT_EQ(get("work/thesis.tex"), "years");
  EXPECT_EQ(get("file"), "a file");
  write(pack);
  put("program/add.cl", std::string(testing::kSource) + "\n");
  put("pack/notes/mine.txt", "kept");
  const Status refused = write_pack(frozen(), root() / "pack", true);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("'notes/mine.txt' is not of the pack"), std::string::npos)
      << refused.error().text();
  EXPECT_EQ(get("pack/notes/mine.txt"), "kept");
  // A damaged pack is still one.
  fs::remove_all(root() / "pack/notes");
  put("pack/add.cl", "damaged");
  EXPECT_TRUE(write_pack(frozen(), root() / "pack", true));
  EXPECT_TRUE(load_pack(root() / "pack"));
}

// Workers of several devices make the pack of an epoch at the same moment.
TEST_F(PackTest, ManyWritersOfOnePackAllSucceed) {
  const PackContents pack = frozen();
  for (int round = 0; round < 20; ++round) {
    const fs::path folder = root() / fmt::format("packs/{}", round);
    std::vector<std::string> errors(8);
    std::latch start(8);
    {
      std::vector<std::jthread> writers;
      for (std::string& error : errors)
        writers.emplace_back([&] {
          start.arrive_and_wait();
          if (const Status written = write_pack(pack, folder); !written) error = written.error().text();
        });
    }
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    EXPECT_TRUE(load_pack(folder));
    int folders = 0;
    for (const auto& entry : fs::directory_iterator(root() / "packs"))
      folders += entry.is_directory() ? 1 : 0;
    EXPECT_EQ(folders, round + 1) << "no scratch folder stays";
  }
}

TEST_F(PackTest, AFailedWriteLeavesTheOldPack) {
  write(frozen());
  put("blocker", "a file where a folder should be");
  EXPECT_FALSE(write_pack(frozen(), root() / "blocker/pack"));
  EXPECT_TRUE(load_pack(root() / "pack"));
  EXPECT_EQ(get("blocker"), "a file where a folder should be");
  EXPECT_FALSE(write_pack(frozen(), root() / "blocker"));
  EXPECT_EQ(get("blocker"), "a file where a folder should be");
}

// Whichever read fails, the pack is not half read: the error is the disk's, with the file.
TEST_F(PackTest, EveryFailedReadIsAnError) {
  const PackContents pack = frozen();
  FakeFiles files;
  for (const auto& [name, bytes] : pack.files) ASSERT_TRUE(files.write_atomic("/pack/" + name, bytes));
  int failing = 0;
  for (; failing < 100; ++failing) {
    int operation = 0;
    files.fault = [&](std::string_view, const fs::path& path) -> Status {
      if (operation++ == failing) return fail(Code::exhausted, "{}: planted fault", path.string());
      return {};
    };
    const auto loaded = load_pack("/pack", files);
    if (operation <= failing) {  // the fault's turn never came
      EXPECT_TRUE(loaded) << loaded.error().text();
      break;
    }
    ASSERT_FALSE(loaded) << "operation " << failing;
    EXPECT_NE(loaded.error().text().find("planted fault"), std::string::npos) << loaded.error().text();
  }
  EXPECT_EQ(failing, 4);  // the folder and three files
}

TEST_F(PackTest, SignaturesMakeTrust) {
  write(frozen());
  const KeyPair mine = key_of(1);
  const std::vector<PublicKey> trusted = {mine.public_key};
  EXPECT_EQ(verify_pack_signature(root() / "pack", trusted).error().code(), Code::denied);
  ASSERT_TRUE(sign_pack(root() / "pack", mine));
  EXPECT_TRUE(verify_pack_signature(root() / "pack", trusted));
  EXPECT_FALSE((*load_pack(root() / "pack"))->trusted);  // the user has no such key
  put("config/trusted-keys",
      "# build machine\n" + key_of(2).public_key.hex() + "\n" + mine.public_key.hex() + "  # mine\n");
  EXPECT_TRUE((*load_pack(root() / "pack"))->trusted);
  const std::vector<PublicKey> others = {key_of(2).public_key};
  EXPECT_EQ(verify_pack_signature(root() / "pack", others).error().code(), Code::denied);
  put("config/trusted-keys", "abc\n");
  EXPECT_TRUE(
      message(load_pack(root() / "pack")).starts_with((root() / "config/trusted-keys").string() + ":1: "));
}

TEST_F(PackTest, EveryFlippedByteOfASignatureIsSeen) {
  write(frozen());
  ASSERT_TRUE(sign_pack(root() / "pack", key_of(1)));
  PackContents pack = frozen();
  pack.files["pack.sig"] = get("pack/pack.sig");
  FakeFiles files;
  for (const auto& [name, bytes] : pack.files) ASSERT_TRUE(files.write_atomic("/pack/" + name, bytes));
  ASSERT_TRUE(load_pack("/pack", files));
  const std::string signature = pack.files["pack.sig"];
  for (std::size_t at = 0; at < signature.size(); ++at) {
    std::string damaged = signature;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    ASSERT_TRUE(files.write_atomic("/pack/pack.sig", damaged));
    ASSERT_FALSE(load_pack("/pack", files)) << at;
  }
}

TEST_F(PackTest, ASignatureOfAnotherPackDoesNotHold) {
  write(frozen());
  ASSERT_TRUE(sign_pack(root() / "pack", key_of(1)));
  const std::string signature = get("pack/pack.sig");
  put("program/add.cl", std::string(testing::kSource) + "\n");
  ASSERT_TRUE(write_pack(frozen(), root() / "pack", true));
  put("pack/pack.sig", signature);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), Code::denied);
}

TEST_F(PackTest, OpenTellsFilesPacksAndShippedNamesApart) {
  write(frozen());
  EXPECT_TRUE(open_program({.what = (root() / "pack").string()}));
  EXPECT_TRUE(open_program({.what = (root() / "pack/pack.toml").string()}));
  EXPECT_TRUE(open_program({.what = (root() / "program/add.toml").string()}));
  EXPECT_EQ(message(open_program({.what = "lotery"})),
            "'lotery' is no program file, no pack's folder and no shipped program, did you mean 'lottery'?");
  EXPECT_EQ(message(open_program({.what = (root() / "nothing").string()})),
            "'" + (root() / "nothing").string() + "' is not there");
  EXPECT_EQ(message(open_program({.what = "lottery", .epoch_seed_hex = "12"})),
            "the epoch seed '12' is not 64 hexadecimal digits");
  const auto lottery = open_program({.what = "lottery"});
  ASSERT_TRUE(lottery) << lottery.error().text();
  EXPECT_NE((*lottery)->recipe, nullptr);
}

TEST_F(PackTest, AFolderOfShippedProgramsMayHoldSeveral) {
  ::setenv("FURLONG_PROGRAMS", (root() / "shipped").c_str(), 1);
  put("shipped/sums/add.cl", testing::kSource);
  put("shipped/sums/add.toml", testing::kProgram);
  put("shipped/sums/add_more.toml", with("name = \"add\"", "name = \"add_more\""));
  const auto names = shipped_programs();
  for (const char* name : {"add", "add_more", "lottery"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  const auto more = open_program({.what = "add_more"});
  ASSERT_TRUE(more) << more.error().text();
  EXPECT_EQ((*more)->name, "add_more");
  EXPECT_EQ(
      message(open_program({.what = "add_mor"})),
      "'add_mor' is no program file, no pack's folder and no shipped program, did you mean 'add_more'?");
  EXPECT_FALSE(open_program({.what = "sums"}));  // the folder's name is nobody's
  EXPECT_TRUE(is_shipped({.what = "add"}));
  EXPECT_TRUE(is_shipped({.what = "lottery"}));
  EXPECT_TRUE(is_shipped({.what = (root() / "shipped/sums/../sums/add.toml").string()}));
  EXPECT_FALSE(is_shipped({.what = (root() / "program/add.toml").string()}));
  EXPECT_FALSE(is_shipped({.what = "sums"}));
  ::unsetenv("FURLONG_PROGRAMS");
}

TEST_F(PackTest, ALotteryPackGetsItsRecipe) {
  lottery::Parameters parameters;
  parameters.epoch_seed = lottery::demonstration_seed();
  const auto contents = lottery::make_pack(parameters);
  ASSERT_TRUE(contents) << contents.error().text();
  write(*contents);
  const auto loaded = load_pack(root() / "pack");
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_NE((*loaded)->recipe, nullptr);
  EXPECT_EQ((*loaded)->epoch.size(), 16u);
  EXPECT_FALSE((*loaded)->vectors.empty());
  EXPECT_FALSE((*loaded)->trusted);
}

// The fuzzer's seed verifies, so that its mutations start from a whole pack; if a test program changes, write
// it anew.
TEST_F(PackTest, TheFuzzersSeedVerifies) {
  const PackContents pack = frozen();
  if (std::getenv("FURLONG_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(
        system_files().write_atomic("furlong/program/pack_fuzz/pack.toml", pack.files.at("pack.toml")));
  }
  EXPECT_EQ(*system_files().read("furlong/program/pack_fuzz/pack.toml"), pack.files.at("pack.toml"));
}

TEST(PackName, OnlyPlainRelativePaths) {
  for (const std::string_view good : {"a", "a/b.c", "A-1_x/..b", "x.toml"})
    EXPECT_TRUE(internal::is_pack_name(good)) << good;
  for (const std::string_view bad :
       {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a b", "a\nb", "ä", "a:b", "~"})
    EXPECT_FALSE(internal::is_pack_name(bad)) << bad;
}

}  // namespace
}  // namespace furlong::program
