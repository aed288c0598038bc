#include "furlong/campaign/make_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>

#include "furlong/base/os/file.h"
#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/campaign/campaign.h"
#include "furlong/campaign/campaign_list.h"
#include "furlong/campaign/internal/items.h"
#include "furlong/program/instance.h"
#include "furlong/program/pack.h"
#include "furlong/shard/pace.h"
#include "furlong/shard/store.h"

namespace furlong::campaign {
namespace {

namespace fs = std::filesystem;

/// A program as the store has it.
struct Frozen {
  std::shared_ptr<const program::Program> program;
  PackItem pack;
  std::optional<DatasetItem> dataset;
};

constexpr std::string_view kSignatureFile = "pack.sig";

Result<Frozen> freeze(const ListedProgram& listed) {
  Frozen frozen;
  std::error_code error;
  if (fs::is_directory(listed.file, error)) {
    FURLONG_TRY(frozen.program, program::load_pack(listed.file));
    if (!frozen.program->trusted && !listed.allow_unsigned)
      return fail(
          Code::denied,
          "the pack {} has no signature by a trusted key, and a pack is code that runs as you. Sign it "
          "(furlong pack sign), add its maker's key to {}, or say allow_unsigned = true",
          listed.file.string(), (config_folder() / "trusted-keys").string());
    FURLONG_TRY(frozen.pack.contents, program::read_pack(listed.file));
    frozen.pack.contents.files.erase(std::string(kSignatureFile));
  } else {
    FURLONG_TRY(frozen.program, program::load_program_file(listed.file));
    FURLONG_TRY(frozen.pack.contents, program::freeze_program(*frozen.program));
  }
  frozen.pack.content = program::pack_hash(frozen.pack.contents);
  if (frozen.program->recipe && !frozen.program->recipe->dataset_key().empty())
    frozen.dataset =
        DatasetItem{frozen.program->recipe->name(), blake2b_256(frozen.program->recipe->dataset_key()),
                    frozen.program->recipe->dataset_bytes()};
  return frozen;
}

/// Every parameter in the program's order: what was left out has the program's value, and so a race that
/// names a default is the same as one that does not.
Result<Problem> whole_problem(const Frozen& frozen, const Problem& given) {
  if (frozen.program->editions.empty())
    return fail(Code::invalid, "'{}' has no source", frozen.program->name);
  FURLONG_TRY(const auto instance,
              program::Instance::make(frozen.program, frozen.program->editions[0].language, given, {}));
  Problem whole;
  for (const auto& [name, value] : frozen.program->problem) {
    const auto set = instance.problem().find(name);
    whole.emplace_back(name, set != instance.problem().end() ? set->second : value);
  }
  return whole;
}

/// Numbers by size, all else by text.
bool value_less(const lattice::Value& a, const lattice::Value& b) {
  const auto number = [](const lattice::Value& value) -> std::optional<double> {
    if (value.integer() != nullptr) return static_cast<double>(*value.integer());
    if (value.floating() != nullptr) return *value.floating();
    return std::nullopt;
  };
  const auto x = number(a), y = number(b);
  if (x && y) return *x < *y;
  if (x || y) return x.has_value();
  return a.text() < b.text();
}

struct Race {
  RaceItem item;
  Bytes bytes;
  std::string dataset;  ///< hex; empty: none

  bool operator<(const Race& other) const {
    // What shares a dataset, a program and a device stands together; the bytes make it a total order.
    const auto key = [](const Race& race) {
      return std::tie(race.dataset, race.item.program, race.item.content, race.item.device);
    };
    if (key(*this) != key(other)) return key(*this) < key(other);
    const Problem& a = item.problem;
    const Problem& b = other.item.problem;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
      if (value_less(a[i].second, b[i].second)) return true;
      if (value_less(b[i].second, a[i].second)) return false;
    }
    return bytes < other.bytes;
  }
};

class Maker {
 public:
  Maker(StoreSummary& summary, shard::Pace& pace) : summary_(summary), pace_(pace) {}

  Status read(const ListedProgram& listed) {
    const std::uint64_t running = pace_.begin(listed.file.filename().string());
    auto frozen = freeze(listed);
    pace_.finish(running);
    pace_.advance(1);
    if (!frozen) {
      const Code code = frozen.error().code();
      // A file that is not there is the list's to mend.
      return Error(code == Code::unavailable ? Code::invalid : code,
                   fmt::format("{}: {}", listed.where, frozen.error().text()));
    }
    for (const Problem& problem : listed.problems) {
      auto whole = whole_problem(*frozen, problem);
      if (!whole) return fail(whole.error().code(), "{}: {}", listed.where, whole.error().text());
      for (const std::string& device : listed.devices) {
        Race race;
        race.item = {
            frozen->program->name, frozen->pack.content, frozen->program->source_hash(), *whole, device,
            listed.rules};
        race.bytes = encode(race.item);
        if (frozen->dataset) race.dataset = frozen->dataset->key.hex();
        if (!races_.insert(std::move(race)).second) ++summary_.repeated;
      }
    }
    if (frozen->dataset) datasets_.emplace(frozen->dataset->key.hex(), *frozen->dataset);
    const std::string content = frozen->pack.content.hex();
    programs_.emplace(content, *std::move(frozen));
    return {};
  }

  Status write(shard::StoreWriter& writer) {
    for (const auto& [key, dataset] : datasets_) {
      FURLONG_TRY(dataset_items_[key], add(writer, encode(dataset), true));
      FURLONG_CHECK(unit(writer, fmt::format("(dataset {})", key.substr(0, 16)), dataset_items_[key], {}));
      ++summary_.datasets;
    }
    for (auto& [content, frozen] : programs_) {
      FURLONG_TRY(program_items_[content], add(writer, encode(frozen.pack), true));
      FURLONG_CHECK(unit(writer, fmt::format("(program {} {})", frozen.program->name, content.substr(0, 16)),
                         program_items_[content], {}));
      ++summary_.programs;
    }
    for (const Race& race : races_) FURLONG_CHECK(write_race(writer, race));
    return {};
  }

 private:
  Result<shard::Key> add(shard::StoreWriter& writer, const Bytes& item, bool shared) {
    ++summary_.items;
    summary_.item_bytes += item.size();
    return writer.add_item(item, shared);
  }

  Status unit(shard::StoreWriter& writer, const std::string& name, const shard::Key& item,
              std::vector<shard::Key> references) {
    ++summary_.units;
    FURLONG_CHECK(writer.add_unit(name, {item}, std::move(references)));
    return {};
  }

  Status write_race(shard::StoreWriter& writer, const Race& race) {
    std::string name = race.item.program;
    if (!race.item.problem.empty()) name += " " + problem_text(race.item.problem);
    name += " @ " + race.item.device;
    const unsigned seen = ++names_[name];  // raced by other rules, or another program of that name
    if (seen > 1) name += fmt::format(" #{}", seen);
    std::vector<shard::Key> references{program_items_.at(race.item.content.hex())};
    if (!race.dataset.empty()) references.push_back(dataset_items_.at(race.dataset));
    std::ranges::sort(references);
    FURLONG_TRY(const shard::Key key, add(writer, race.bytes, false));
    ++summary_.races;
    return unit(writer, name, key, std::move(references));
  }

  StoreSummary& summary_;
  shard::Pace& pace_;
  std::set<Race> races_;
  std::map<std::string, Frozen> programs_;       // by content
  std::map<std::string, DatasetItem> datasets_;  // by key
  std::map<std::string, shard::Key> program_items_, dataset_items_;
  std::map<std::string, unsigned> names_;
};

}  // namespace

Result<StoreSummary> make_campaign_store(const fs::path& list, const fs::path& store,
                                         const shard::Progress& progress, std::stop_token stop) {
  FURLONG_TRY(const std::string text, system_files().read(list));
  std::error_code error;
  const fs::path folder = fs::absolute(list, error).parent_path();
  if (error) return fail(Code::internal, "{}: {}", list.string(), error.message());
  FURLONG_TRY(const std::vector<ListedProgram> programs, parse_campaign(text, folder, list.string()));
  StoreSummary summary;
  shard::Pace pace("store", programs.size(), progress);
  Maker maker(summary, pace);
  for (const ListedProgram& listed : programs) {
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while programs were read");
    FURLONG_CHECK(maker.read(listed));
  }
  FURLONG_TRY(shard::StoreWriter writer,
              shard::StoreWriter::create(store, std::string(kExecutorName), kExecutorVersion,
                                         fmt::format(R"({{"format":{}}})", kItemFormat)));
  FURLONG_CHECK(maker.write(writer));
  FURLONG_CHECK(writer.finish());
  pace.end();
  return summary;
}

}  // namespace furlong::campaign
