#include "furlong/shard/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/random.h"
#include "furlong/shard/internal/store_format.h"

namespace furlong::shard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make("furlong-store-test");
    ASSERT_TRUE(made) << made.error().text();
    folder_.emplace(std::move(*made));
    file_ = folder_->path() / "s.store";
  }
  StoreWriter writer() {
    auto made = StoreWriter::create(file_, "synthetic", 3, R"({"a":1})");
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(*made);
  }
  static Key item(StoreWriter& writer, std::string_view text) {
    const auto key = writer.add_item(as_bytes(text));
    if (!key) throw std::runtime_error(key.error().text());
    return *key;
  }
  // "a" owns A; "b" owns B and B2 and refers to A; "c" owns C and refers to A and B.
  std::shared_ptr<const Store> three() {
    StoreWriter w = writer();
    const Key a = item(w, "A"), b = item(w, "B"), b2 = item(w, "B2"), c = item(w, "C");
    item(w, "nobody's");
    EXPECT_TRUE(w.add_unit("a", {a}, {}));
    EXPECT_TRUE(w.add_unit("b", {b, b2}, {a}));
    EXPECT_TRUE(w.add_unit("c", {c}, {b, a, b}));
    EXPECT_TRUE(w.finish());
    return open();
  }
  std::shared_ptr<const Store> open() {
    auto opened = Store::open(file_);
    if (!opened) throw std::runtime_error(opened.error().text());
    return *opened;
  }
  std::string bytes() {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(std::string_view text) {
    std::ofstream out(file_, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  Error open_error() {
    auto opened = Store::open(file_);
    EXPECT_FALSE(opened);
    return opened ? Error(Code::internal, "opened") : opened.error();
  }

  std::optional<TemporaryFolder> folder_;
  fs::path file_;
};

TEST_F(StoreTest, GivesBackWhatWasWritten) {
  const auto store = three();
  EXPECT_EQ(store->executor(), "synthetic");
  EXPECT_EQ(store->executor_version(), 3);
  EXPECT_EQ(store->settings(), R"({"a":1})");
  ASSERT_EQ(store->unit_count(), 3u);
  const auto c = store->unit(2);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->name, "c");
  EXPECT_EQ(c->items, std::vector<Key>{blake2b_256("C")});
  std::vector<Key> references{blake2b_256("A"), blake2b_256("B")};
  std::sort(references.begin(), references.end());
  EXPECT_EQ(c->references, references) << "sorted, none twice";
  EXPECT_EQ(c->key, unit_key(c->items, c->references));
  EXPECT_EQ(*store->find_unit("b"), std::optional<UnitIndex>(1));
  EXPECT_EQ(*store->find_unit("d"), std::nullopt);
  EXPECT_EQ(*store->owner(blake2b_256("B2")), std::optional<UnitIndex>(1));
  EXPECT_EQ(*store->owner(blake2b_256("nobody's")), std::nullopt);
  EXPECT_EQ(*store->item_bytes(blake2b_256("B2")), 2u);
  EXPECT_EQ(as_text(*store->raw_item(blake2b_256("nobody's"))), "nobody's");
  EXPECT_EQ(store->raw_item(blake2b_256("Z")).error().code(), Code::invalid);
  EXPECT_EQ(store->unit(3).error().code(), Code::invalid);
}

TEST_F(StoreTest, TheSameContentHasTheSameDigestAndOtherContentAnother) {
  const Digest first = three()->digest();
  EXPECT_EQ(three()->digest(), first);
  StoreWriter w = writer();
  const Key a = item(w, "A");
  ASSERT_TRUE(w.add_unit("a", {a}, {}));
  ASSERT_TRUE(w.finish());
  EXPECT_NE(open()->digest(), first);
}

TEST_F(StoreTest, TheFileAppearsAtFinishOnly) {
  {
    StoreWriter w = writer();
    item(w, "A");
    EXPECT_FALSE(fs::exists(file_));
  }
  EXPECT_TRUE(fs::is_empty(folder_->path())) << "an abandoned writer leaves nothing";
  three();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_->path()), {}), 1) << "and a finished one one file";
}

TEST_F(StoreTest, RefusesUnitsThatCannotBe) {
  StoreWriter w = writer();
  const Key a = item(w, "A"), b = item(w, "B");
  ASSERT_TRUE(w.add_unit("a", {a}, {}));
  const auto refused = [&](const std::string& name, std::vector<Key> items, std::vector<Key> references) {
    const auto added = w.add_unit(name, std::move(items), std::move(references));
    EXPECT_FALSE(added);
    EXPECT_EQ(added.error().code(), Code::invalid);
    return added.error().text();
  };
  EXPECT_THAT(refused("b", {a}, {}), HasSubstr("owned by unit 'a' already"));
  EXPECT_THAT(refused("b", {blake2b_256("Z")}, {}), HasSubstr("there is no item"));
  EXPECT_THAT(refused("a", {b}, {}), HasSubstr("two units of the name 'a'"));
  EXPECT_THAT(refused("b", {b, b}, {}), HasSubstr("twice"));
  EXPECT_THAT(refused("b", {b}, {b}), HasSubstr("its own item"));
  EXPECT_THAT(refused("b", {}, {}), HasSubstr("owns no item"));
  EXPECT_THAT(refused("", {b}, {}), HasSubstr("its name"));
  EXPECT_TRUE(w.add_unit("b", {b}, {a})) << "a refused unit leaves no mark";
  ASSERT_TRUE(w.finish());
  EXPECT_EQ(open()->unit_count(), 2u);
}

TEST_F(StoreTest, AReferenceMayComeBeforeItsOwnerButNotWithoutOne) {
  {
    StoreWriter w = writer();
    const Key a = item(w, "A"), b = item(w, "B");
    ASSERT_TRUE(w.add_unit("a", {a}, {b}));
    ASSERT_TRUE(w.add_unit("b", {b}, {}));
    EXPECT_TRUE(w.finish());
  }
  StoreWriter w = writer();
  const Key a = item(w, "A"), orphan = item(w, "nobody's");
  ASSERT_TRUE(w.add_unit("a", {a}, {orphan}));
  const Status status = w.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::invalid);
  EXPECT_THAT(status.error().text(), HasSubstr("unit 'a' refers to the item " + orphan.brief()));
}

TEST_F(StoreTest, GrowsItsMapAndHoldsManyAndLargeItems) {
  StoreWriter w = writer();
  std::vector<Key> keys;
  const std::string large(25u << 20, 'x');  // three of these are more than the first map
  for (const char* head : {"1", "2", "3"}) keys.push_back(item(w, head + large));
  for (int i = 0; i < 20000; ++i) keys.push_back(item(w, fmt::format("small {}", i)));
  for (std::size_t i = 0; i < keys.size(); ++i)
    ASSERT_TRUE(w.add_unit(fmt::format("u{}", i), {keys[i]},
                           i > 0 ? std::vector<Key>{keys[i - 1]} : std::vector<Key>{}));
  ASSERT_TRUE(w.finish());
  const auto store = open();
  ASSERT_EQ(store->unit_count(), keys.size());
  for (std::size_t i = 0; i < keys.size(); i += 997)
    EXPECT_EQ(store->unit(static_cast<UnitIndex>(i))->items[0], keys[i]);
  EXPECT_EQ(*store->item_bytes(keys[1]), large.size() + 1);
  EXPECT_EQ(blake2b_256(*store->raw_item(keys[2])), keys[2]);
}

TEST_F(StoreTest, LongNamesAreFound) {
  StoreWriter w = writer();
  const Key a = item(w, "A");
  const std::string name(5000, 'n');
  ASSERT_TRUE(w.add_unit(name, {a}, {}));
  ASSERT_TRUE(w.finish());
  EXPECT_EQ(*open()->find_unit(name), std::optional<UnitIndex>(0));
}

TEST_F(StoreTest, AFullDiskIsSaidAndLeavesNothing) {
  struct rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  auto* const handler = signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 1u << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    StoreWriter w = writer();
    for (int i = 0; i < 400 && status; ++i) {
      const auto key = w.add_item(as_bytes(fmt::format("{} {}", i, std::string(9000, 'x'))));
      if (!key) status = key.error();
    }
    if (status) status = w.finish();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::exhausted) << status.error().text();
  EXPECT_TRUE(fs::is_empty(folder_->path()));
}

// Every way in which a file is not a good store has its own answer, and none takes memory by what the file
// says.
TEST_F(StoreTest, AbsentForeignAndTornFilesAreToldApart) {
  EXPECT_EQ(open_error().code(), Code::unavailable);
  write("hello");
  EXPECT_EQ(open_error().code(), Code::invalid);
  EXPECT_THAT(open_error().text(), HasSubstr("not a store: 5 bytes"));
  write(std::string(1u << 16, 'x'));
  EXPECT_EQ(open_error().code(), Code::invalid);
  EXPECT_THAT(open_error().text(), HasSubstr("magic"));
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_EQ(open_error().code(), Code::invalid);
  fs::remove(file_);
  three();
  const std::string good = bytes();
  for (const std::size_t keep :
       {std::size_t{200}, std::size_t{4096}, std::size_t{8191}, good.size() - 4096, good.size() - 1}) {
    write(good.substr(0, keep));
    const Error error = open_error();
    EXPECT_EQ(error.code(), Code::corrupt) << keep << ": " << error.text();
    EXPECT_THAT(error.text(), HasSubstr(fmt::format("ends at byte {}", keep)));
  }
}

TEST_F(StoreTest, ADamagedHeadIsAnErrorWithoutLargeAllocations) {
  three();
  const std::string good = bytes();
  // The page size, the map size and the last page, each far too large.
  for (const std::size_t at : {std::size_t{16 + 24}, std::size_t{16 + 24 + 96}}) {
    std::string bad = good;
    std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), 4, '\x7F');
    write(bad);
    EXPECT_EQ(open_error().code(), Code::corrupt) << at;
  }
  std::string bad = good;
  std::fill_n(bad.begin() + 16 + 16, 8, '\x7F');  // the map size is not asked
  write(bad);
  EXPECT_TRUE(Store::open(file_));
  bad = good;
  bad[20] = 9;  // LMDB's own version
  write(bad);
  EXPECT_EQ(open_error().code(), Code::incompatible);
}

// A store of another version, and an LMDB file that is something else, made with LMDB itself.
class ForeignStore : public StoreTest {
 protected:
  void put(const char* table, const std::map<std::string, std::string>& rows) {
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi dbi = 0;
    ASSERT_EQ(mdb_env_create(&env), 0);
    ASSERT_EQ(mdb_env_set_maxdbs(env, 8), 0);
    ASSERT_EQ(mdb_env_open(env, file_.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, 0666), 0);
    ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    ASSERT_EQ(mdb_dbi_open(txn, table, MDB_CREATE, &dbi), 0);
    for (const auto& [key, value] : rows) {
      MDB_val k{key.size(), const_cast<char*>(key.data())}, v{value.size(), const_cast<char*>(value.data())};
      ASSERT_EQ(mdb_put(txn, dbi, &k, &v, 0), 0);
    }
    ASSERT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
  }
};

TEST_F(ForeignStore, ANewerVersionSaysFoundAndExpected) {
  three();
  put("meta", {{"version", "3"}});
  const Error error = open_error();
  EXPECT_EQ(error.code(), Code::incompatible);
  EXPECT_THAT(error.text(), HasSubstr("found a store of version 3, expected 2"));
}

TEST_F(ForeignStore, AnOlderVersionSaysSoThoughItHasOtherTables) {
  put("meta", {{"format", "furlong store"}, {"version", "1"}});
  for (const char* table : {"items", "units", "names", "owners"}) put(table, {{"a", "b"}});
  const Error error = open_error();
  EXPECT_EQ(error.code(), Code::incompatible);
  EXPECT_THAT(error.text(), HasSubstr("found a store of version 1, expected 2: make it anew"));
}

TEST_F(ForeignStore, AnIndexThatPointsNowhereIsCorrupt) {
  three();
  const Key key = blake2b_256("C");
  const auto place = internal::encode_place({12345, false, 2});
  put("index", {{std::string(as_text(key.bytes)), std::string(as_text(place))}});
  const auto store = Store::open(file_);
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->raw_item(key).error().code(), Code::corrupt);
  const auto owner = internal::encode_place({0, false, 77});
  put("index", {{std::string(as_text(key.bytes)), std::string(as_text(owner))}});
  const auto again = Store::open(file_);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->owner(key).error().code(), Code::corrupt);
  put("index", {{std::string(as_text(key.bytes)), "short"}});
  EXPECT_EQ((*Store::open(file_))->raw_item(key).error().code(), Code::corrupt);
}

TEST_F(StoreTest, WhereAnItemStandsChangesNoKey) {
  const auto digest = [&](bool shared) {
    auto writer = StoreWriter::create(file_, "test", 1, "{}").value();
    const Key key = *writer.add_item(as_bytes("an item"), shared);
    EXPECT_EQ(*writer.add_item(as_bytes("an item"), !shared), key) << "the same bytes are one item";
    EXPECT_TRUE(writer.add_unit("unit", {key}, {}));
    EXPECT_TRUE(writer.finish());
    const auto store = Store::open(file_).value();
    EXPECT_EQ(as_text(*store->raw_item(key)), "an item");
    return store->digest();
  };
  EXPECT_EQ(digest(false), digest(true));
}

TEST_F(ForeignStore, SomebodyElsesTablesAreNoStore) {
  put("theirs", {{"a", "b"}});
  EXPECT_EQ(open_error().code(), Code::invalid);
  EXPECT_THAT(open_error().text(), HasSubstr("without the table 'meta'"));
  for (const char* table : internal::kTables) put(table, {{"a", "b"}});
  EXPECT_EQ(open_error().code(), Code::invalid);
  EXPECT_THAT(open_error().text(), HasSubstr("its tables are somebody else's"));
}

TEST_F(ForeignStore, ACountThatDoesNotFitAndAMissingEntryAreCorrupt) {
  three();
  put("meta", {{"units", "4"}});
  EXPECT_EQ(open_error().code(), Code::corrupt);
  put("meta", {{"units", "3"}, {"digest", "zz"}});
  EXPECT_EQ(open_error().code(), Code::corrupt);
  put("meta", {{"units", "many"}});
  EXPECT_EQ(open_error().code(), Code::corrupt);
}

TEST(StoreFormat, CorruptOffsetsOfAUnitErrorWithoutLargeAllocations) {
  Unit unit{{}, "name", {blake2b_256("A"), blake2b_256("B")}, {blake2b_256("C")}};
  unit.key = unit_key(unit.items, unit.references);
  const Bytes good = internal::encode_unit(unit);
  ASSERT_TRUE(internal::decode_unit(good));
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    const auto torn = internal::decode_unit(ByteView(good).first(keep));
    ASSERT_FALSE(torn) << keep;
    EXPECT_EQ(torn.error().code(), Code::corrupt);
  }
  for (const std::size_t at : {std::size_t{32}, std::size_t{40}, good.size() - 36}) {
    Bytes bad = good;
    std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), 4, 0xFF);  // four thousand million of them
    const auto read = internal::decode_unit(bad);
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code(), Code::corrupt);
    EXPECT_THAT(read.error().text(), HasSubstr("byte"));
  }
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_FALSE(internal::decode_unit(longer));
  Bytes flipped = good;
  flipped.back() ^= 1;
  EXPECT_THAT(internal::decode_unit(flipped).error().text(), HasSubstr("not that of its key"));
}

TEST_F(StoreTest, ManyThreadsMayRead) {
  const auto store = three();
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        if (store->unit(static_cast<UnitIndex>(i % 3)) && *store->owner(blake2b_256("C")) == 2u) ++good;
    });
  threads.clear();
  EXPECT_EQ(good, 1600);
}

}  // namespace
}  // namespace furlong::shard
