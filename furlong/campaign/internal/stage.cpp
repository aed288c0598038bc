#include "furlong/campaign/internal/stage.h"

#include <utility>

#include "furlong/base/os/paths.h"
#include "furlong/base/text.h"
#include "furlong/program/pack.h"
#include "furlong/select/select.h"

namespace furlong::campaign {
namespace {

constexpr const char* kHost = "host:0";

/// What the items of a unit say.
struct Contents {
  std::optional<RaceItem> race;
  std::optional<PackItem> pack;
  std::optional<DatasetItem> dataset;
};

Result<Contents> read_items(const shard::Unit& unit, shard::ItemSource& items) {
  Contents contents;
  const auto take = [&](const shard::Key& key, bool own) -> Status {
    FURLONG_TRY(const ByteView bytes, items.item(key));
    FURLONG_TRY(Item item, decode(bytes));
    const bool twice = (std::holds_alternative<PackItem>(item) && contents.pack) ||
                       (std::holds_alternative<DatasetItem>(item) && contents.dataset) ||
                       (std::holds_alternative<RaceItem>(item) && (contents.race || !own));
    if (twice) return fail(Code::mismatch, "it has more than one race, program or dataset");
    if (auto* pack = std::get_if<PackItem>(&item)) contents.pack = std::move(*pack);
    if (auto* dataset = std::get_if<DatasetItem>(&item)) contents.dataset = std::move(*dataset);
    if (auto* race = std::get_if<RaceItem>(&item)) contents.race = std::move(*race);
    return {};
  };
  for (const shard::Key& key : unit.items) FURLONG_CHECK(take(key, true));
  for (const shard::Key& key : unit.references) FURLONG_CHECK(take(key, false));
  return contents;
}

/// Of a unit that cannot be raced as it stands, wherever: the plan names it, and the others go on.
Error rejected(const Error& error) {
  if (error.code() != Code::invalid && error.code() != Code::denied && error.code() != Code::incompatible)
    return error;
  return fail(Code::mismatch, "{}", error.text());
}

}  // namespace

race::Options race_options(const RaceRules& rules) {
  race::Options options;
  options.budget_s = rules.budget_s;
  options.window_ms = rules.window_ms;
  options.rules.threshold = rules.threshold_pct / 100;
  options.seed = rules.seed;
  options.trial = false;  // the job's process is the guard
  options.keep_samples = false;
  return options;
}

Stage::Stage(std::unique_ptr<Devices> devices, std::uint64_t memory_cap_bytes, std::stop_token stop)
    : devices_(std::move(devices)), memory_cap_bytes_(memory_cap_bytes), stop_(std::move(stop)) {}
Stage::~Stage() = default;

Result<std::string> Stage::address_of(const std::string& name) {
  const std::string_view silicon = silicon_of(name);
  if (silicon.empty()) return name;
  if (const auto known = addresses_.find(name); known != addresses_.end()) return known->second;
  std::vector<std::string> here;
  for (const device::Facts& facts : devices_->list()) {
    const std::string hash = facts.silicon.hash();
    if (hash == silicon) return addresses_[name] = facts.address();
    here.push_back(fmt::format("{} is silicon:{}", facts.address(), hash));
  }
  return fail(Code::unavailable, "no device here is {}{}{}", name, here.empty() ? "" : ": ",
              join(here, ", "));
}

Result<device::Device*> Stage::open(const std::string& address) {
  auto& device = open_[address];
  if (device) return device.get();
  auto opened = devices_->open(address);
  if (!opened)
    return Error(opened.error().code(), fmt::format("the device {}: {}", address, opened.error().text()));
  device = *std::move(opened);
  if (memory_cap_bytes_ != 0) device->set_memory_limit(memory_cap_bytes_);
  return device.get();
}

Result<device::Device*> Stage::device(const std::string& name) {
  FURLONG_TRY(const std::string address, address_of(name));
  return open(address);
}

Result<std::shared_ptr<const program::Program>> Stage::program(const PackItem& pack) {
  const std::string content = pack.content.hex();
  if (const auto known = programs_.find(content); known != programs_.end()) return known->second;
  if (program::pack_hash(pack.contents) != pack.content)
    return fail(Code::corrupt, "the program of the item is not {}", pack.content.brief());
  const auto folder = cache_folder() / "packs" / content;
  FURLONG_CHECK(program::write_pack(pack.contents, folder, true));
  FURLONG_TRY(auto program, program::load_pack(folder));
  programs_.emplace(content, program);
  return program;
}

Status Stage::bind(Ready& ready) {
  FURLONG_TRY(device::Device * device, this->device(ready.item.device));
  const device::Facts& facts = device->facts();
  const auto language = common_language(*ready.program, facts);
  if (!language) return rejected(language.error());
  auto instance =
      program::Instance::make(ready.program, *language, ready.item.problem, expression_facts(facts));
  if (!instance) return rejected(instance.error());
  ready.instance.emplace(*std::move(instance));
  auto points = ready.instance->select(ready.item.rules.variants, ready.item.rules.allow_lossy);
  if (!points) return rejected(points.error());
  ready.points = *std::move(points);
  ready.options = race_options(ready.item.rules);
  ready.context.device = device;
  if (ready.program->check.reference == program::ReferenceKind::host) {
    FURLONG_TRY(ready.context.host, open(kHost));
  }
  ready.context.clock = &devices_->clock(facts);
  ready.context.stop = stop_;
  ready.context.reopen = [this, address = facts.address()]() -> Result<device::Device*> {
    open_[address].reset();  // before it is opened again: some cards are held by one process, or one context
    return open(address);
  };
  devices_->attach(*ready.instance);
  return {};
}

Result<std::unique_ptr<Ready>> Stage::prepare(const shard::Unit& unit, shard::ItemSource& items) {
  if (stop_.stop_requested()) return fail(Code::timeout, "stopped");
  FURLONG_TRY(Contents contents, read_items(unit, items));
  if (!contents.race) {
    if (contents.pack) FURLONG_CHECK(program(*contents.pack));
    return std::unique_ptr<Ready>();
  }
  auto ready = std::make_unique<Ready>();
  ready->item = *std::move(contents.race);
  if (!contents.pack || contents.pack->content != ready->item.content)
    return fail(Code::mismatch, "its program {} is not among what it refers to", ready->item.content.brief());
  FURLONG_TRY(ready->program, program(*contents.pack));
  if (ready->program->source_hash() != ready->item.source)
    return fail(Code::mismatch, "its program is {}, not {}: make the store anew with this version of Furlong",
                ready->program->source_hash().brief(), ready->item.source.brief());
  if (contents.dataset) ready->dataset = contents.dataset->key.hex();
  FURLONG_CHECK(bind(*ready));
  return ready;
}

}  // namespace furlong::campaign
