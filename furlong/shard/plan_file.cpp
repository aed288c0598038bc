#include "furlong/shard/internal/failed_units.h"
#include "furlong/shard/internal/sections.h"
#include "furlong/shard/plan.h"

// The bytes of a plan: a magic, a version, then sections (tag, length, body) in a fixed order, then the hash
// of all before it. Read front to back with every length checked against what is left, so that a damaged
// length takes no memory.

namespace furlong::shard {
namespace {

constexpr std::string_view kMagic = "furlong plan\n";
constexpr std::string_view kHead = "HEAD", kShards = "SHRD", kFailed = "FAIL", kTree = "TREE", kSum = "SUM.";

using sections::In;
using sections::Out;

constexpr std::string_view kMend = "regenerate it with furlong shard plan";

Out head(const Plan& plan) {
  Out out;
  out.digest(plan.store).text(plan.executor).number(std::int32_t{plan.executor_version});
  const Sizing& s = plan.sizing;
  out.number(s.budget_bytes).number(s.budget_seconds).number(s.record_cap_bytes).number(s.usable);
  out.number(s.base_bytes).number(s.ram_per_work).number(s.base_seconds).number(s.seconds_per_work);
  out.number(static_cast<std::uint8_t>(s.fitted));
  out.text(plan.order).number(plan.seed).number(plan.slice).digest(plan.journal);
  return out;
}

Status read_head(In in, Plan& plan) {
  FURLONG_TRY(plan.store, in.digest("the store's digest"));
  FURLONG_TRY(plan.executor, in.text("the executor"));
  FURLONG_TRY(const auto version, in.number<std::int32_t>("the executor's version"));
  plan.executor_version = version;
  Sizing& s = plan.sizing;
  FURLONG_TRY(s.budget_bytes, in.number<std::uint64_t>("the budget of memory"));
  FURLONG_TRY(s.budget_seconds, in.amount("the budget of time"));
  FURLONG_TRY(s.record_cap_bytes, in.number<std::uint64_t>("the record's cap"));
  FURLONG_TRY(s.usable, in.amount("the usable share"));
  if (!(s.usable > 0 && s.usable <= 1))
    return fail(Code::corrupt, "the usable share is {}, and must be above 0 and at most 1", s.usable);
  FURLONG_TRY(s.base_bytes, in.number<std::uint64_t>("the base of memory"));
  FURLONG_TRY(s.ram_per_work, in.amount("the memory per work"));
  FURLONG_TRY(s.base_seconds, in.amount("the base of time"));
  FURLONG_TRY(s.seconds_per_work, in.amount("the time per work"));
  const std::size_t at = in.byte();
  FURLONG_TRY(const auto fitted, in.number<std::uint8_t>("whether it was fitted"));
  if (fitted > 1) return fail(Code::invalid, "{}: byte {}: a flag of {}", in.name(), at, fitted);
  s.fitted = fitted == 1;
  FURLONG_TRY(plan.order, in.text("the order"));
  FURLONG_TRY(plan.seed, in.number<std::uint64_t>("the seed"));
  FURLONG_TRY(plan.slice, in.number<std::uint32_t>("the slice"));
  FURLONG_TRY(plan.journal, in.digest("the journal's digest"));
  return in.done("the head");
}

Out shards(const Plan& plan) {
  Out out;
  out.number(static_cast<std::uint32_t>(plan.shards.size()));
  for (const PlanShard& shard : plan.shards) {
    out.number(shard.id).number(static_cast<std::uint8_t>(shard.cost_kind)).number(shard.cost);
    out.number(shard.record_bytes).number(shard.seconds).number(shard.own_bytes).number(shard.cross_bytes);
    out.number(shard.foreign).number(static_cast<std::uint32_t>(shard.units.size()));
    for (const UnitIndex unit : shard.units) out.number(unit);
  }
  return out;
}

Status read_shard(In& in, PlanShard& shard) {
  FURLONG_TRY(shard.id, in.number<std::uint32_t>("a shard's id"));
  const std::size_t at = in.byte();
  FURLONG_TRY(const auto kind, in.number<std::uint8_t>("a cost's tag"));
  if (kind > static_cast<std::uint8_t>(CostKind::work))
    return fail(Code::incompatible,
                "{}: byte {}: shard {}: unknown tag {} of a cost: regenerate it with furlong "
                "shard plan",
                in.name(), at, shard.id, kind);
  shard.cost_kind = static_cast<CostKind>(kind);
  FURLONG_TRY(shard.cost, in.amount("a shard's cost"));
  FURLONG_TRY(shard.record_bytes, in.number<std::uint64_t>("a shard's record"));
  FURLONG_TRY(shard.seconds, in.amount("a shard's seconds"));
  FURLONG_TRY(shard.own_bytes, in.number<std::uint64_t>("a shard's own bytes"));
  FURLONG_TRY(shard.cross_bytes, in.number<std::uint64_t>("a shard's cross bytes"));
  FURLONG_TRY(shard.foreign, in.number<std::uint32_t>("a shard's foreign items"));
  FURLONG_TRY(const auto count, in.number<std::uint32_t>("a shard's number of units"));
  FURLONG_TRY(shard.units, in.numbers(count, "a shard's units"));
  if (shard.units.empty())
    return fail(Code::invalid, "{}: byte {}: shard {} has no units", in.name(), in.byte(), shard.id);
  return {};
}

Status read_shards(In in, Plan& plan) {
  FURLONG_TRY(const auto count, in.number<std::uint32_t>("the number of shards"));
  for (std::uint32_t i = 0; i < count; ++i) {  // no reserve: the count is not to be trusted
    PlanShard shard;
    FURLONG_CHECK(read_shard(in, shard));
    if (shard.id == kJoin || (!plan.shards.empty() && shard.id <= plan.shards.back().id))
      return fail(Code::invalid, "{}: shard {}: ids must ascend", in.name(), shard.id);
    plan.shards.push_back(std::move(shard));
  }
  return in.done("the shards");
}

Status read_failures(In in, Plan& plan) {
  return sections::read_failed_units(
      in, plan.failed, [&](const FailedUnit& failed, std::size_t byte) -> Status {
        if (plan.failed.empty() || failed.unit > plan.failed.back().unit) return {};
        return fail(Code::invalid, "{}: byte {}: failed units must ascend", in.name(), byte);
      });
}

}  // namespace

std::string print_plan(const Plan& plan) {
  Out tree;
  tree.number(static_cast<std::uint32_t>(plan.tree.size()));
  for (const std::uint32_t node : plan.tree) tree.number(node);
  Out out;
  out.raw(kMagic).number(std::uint32_t{kPlanVersion});
  out.section(kHead, head(plan))
      .section(kShards, shards(plan))
      .section(kFailed, sections::failed_units(plan.failed));
  out.section(kTree, tree);
  Out sum;
  sum.digest(blake2b_256(out.bytes()));
  out.section(kSum, sum);
  return out.take();
}

Result<Plan> parse_plan(std::string_view bytes, const std::string& name) {
  In in(bytes, name, kMend);
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size()) || bytes.empty())
    return fail(Code::invalid, "{}: not a shard plan: it does not begin as one", name);
  FURLONG_CHECK(in.raw(kMagic.size(), "the magic"));
  FURLONG_TRY(const auto version, in.number<std::uint32_t>("the version"));
  if (version != kPlanVersion)
    return fail(Code::incompatible, "{}: found a plan of version {}, expected {}: {}", name, version,
                kPlanVersion,
                version < kPlanVersion ? "regenerate it with furlong shard plan"
                                       : "take a newer Furlong, or regenerate it with furlong shard plan");
  Plan plan;
  FURLONG_TRY(const In head_in, in.section(kHead));
  FURLONG_CHECK(read_head(head_in, plan));
  FURLONG_TRY(const In shards_in, in.section(kShards));
  FURLONG_CHECK(read_shards(shards_in, plan));
  FURLONG_TRY(const In failed_in, in.section(kFailed));
  FURLONG_CHECK(read_failures(failed_in, plan));
  FURLONG_TRY(In tree_in, in.section(kTree));
  FURLONG_TRY(const auto nodes, tree_in.number<std::uint32_t>("the size of the tree"));
  FURLONG_TRY(plan.tree, tree_in.numbers(nodes, "the tree"));
  FURLONG_CHECK(tree_in.done("the tree"));
  const std::size_t summed = in.byte();
  FURLONG_TRY(In sum_in, in.section(kSum));
  FURLONG_TRY(const Digest sum, sum_in.digest("the check sum"));
  FURLONG_CHECK(sum_in.done("the check sum"));
  FURLONG_CHECK(in.done("the file"));
  if (sum != blake2b_256(bytes.substr(0, summed)))
    return fail(Code::corrupt, "{}: damaged: the check sum over its first {} bytes does not fit", name,
                summed);
  std::vector<ShardId> ids;
  for (const PlanShard& shard : plan.shards) ids.push_back(shard.id);
  if (Status tree = check_tree(plan.tree, ids); !tree) return std::move(tree.error()).with(name);
  return plan;
}

Result<Plan> read_plan(Files& files, const std::filesystem::path& file) {
  FURLONG_TRY(const std::string bytes, files.read(file));
  return parse_plan(bytes, file.string());
}

Status write_plan(Files& files, const std::filesystem::path& file, const Plan& plan) {
  return files.write_atomic(file, print_plan(plan));
}

}  // namespace furlong::shard
