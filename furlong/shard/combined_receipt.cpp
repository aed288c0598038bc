#include <algorithm>
#include <map>

#include "furlong/base/json.h"
#include "furlong/base/json_object.h"
#include "furlong/shard/run.h"

namespace furlong::shard {
namespace {

constexpr std::string_view kFormat = "furlong combined receipt";
constexpr int kVersion = 1;

// A leaf binds the receipt to its claim and shard; leaves and joins are hashed apart.
Digest leaf_digest(const CombinedReceipt::Leaf& leaf) {
  Hasher hasher;
  hasher.add_field("furlong leaf 1").add_field(std::to_string(leaf.shard));
  hasher.add_field(leaf.claim.hex()).add_field(leaf.receipt.hex());
  return hasher.finish();
}
Digest join_digest(const Digest& left, const Digest& right) {
  Hasher hasher;
  hasher.add_field("furlong join 1").add_field(left.hex()).add_field(right.hex());
  return hasher.finish();
}

Result<Digest> tree_root(const AggregationTree& tree, const std::vector<CombinedReceipt::Leaf>& leaves) {
  std::map<ShardId, Digest> digests;
  for (const auto& leaf : leaves)
    if (!digests.emplace(leaf.shard, leaf_digest(leaf)).second)
      return fail(Code::mismatch, "the combined receipt has shard {} twice", leaf.shard);
  std::vector<Digest> stack;
  std::size_t used = 0;
  for (const std::uint32_t node : tree) {
    if (node == kJoin) {
      if (stack.size() < 2) return fail(Code::invalid, "the aggregation tree is no tree");
      const Digest right = stack.back();
      stack.pop_back();
      stack.back() = join_digest(stack.back(), right);
      continue;
    }
    const auto found = digests.find(node);
    if (found == digests.end()) return fail(Code::mismatch, "the combined receipt lacks shard {}", node);
    stack.push_back(found->second);
    ++used;
  }
  if (stack.size() != 1 || used != leaves.size())
    return fail(Code::mismatch, "the combined receipt has {} shards, the plan's tree {}", leaves.size(),
                used);
  return stack.back();
}

Bytes message(const CombinedReceipt& receipt) {
  Hasher hasher;
  hasher.add_field(kFormat).add_field(std::to_string(kVersion));
  hasher.add_field(receipt.store.hex()).add_field(receipt.plan.hex());
  hasher.add_field(receipt.executor).add_field(std::to_string(receipt.executor_version));
  hasher.add_field(fmt::format("{}", receipt.sample));
  hasher.add_field(receipt.root.hex()).add_field(receipt.signer.hex());
  const Digest digest = hasher.finish();
  return {digest.bytes.begin(), digest.bytes.end()};
}

}  // namespace

Result<CombinedReceipt> combine(const Plan& plan, const RunReport& report, const KeyPair& signer) {
  CombinedReceipt combined;
  combined.store = plan.store;
  combined.plan = blake2b_256(print_plan(plan));
  combined.executor = plan.executor;
  combined.executor_version = plan.executor_version;
  combined.sample = report.sample;
  std::map<ShardId, const ShardOutcome*> outcomes;
  for (const ShardOutcome& outcome : report.shards) outcomes[outcome.shard] = &outcome;
  for (const std::uint32_t node : plan.tree) {
    if (node == kJoin) continue;
    const auto found = outcomes.find(node);
    if (found == outcomes.end() || !found->second->entry)
      return fail(Code::invalid, "shard {} has no receipt: there is nothing to combine yet", node);
    combined.leaves.push_back({node, found->second->claim, found->second->entry->receipt});
  }
  FURLONG_TRY(combined.root, tree_root(plan.tree, combined.leaves));
  combined.signer = signer.public_key;
  combined.signature = sign(message(combined), signer);
  return combined;
}

std::string print_combined(const CombinedReceipt& receipt) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["store"] = receipt.store.hex();
  json["plan"] = receipt.plan.hex();
  json["executor"] = receipt.executor;
  json["executor_version"] = receipt.executor_version;
  json["shards"] = Json::array();
  for (const auto& leaf : receipt.leaves)
    json["shards"].push_back(
        {{"shard", leaf.shard}, {"claim", leaf.claim.hex()}, {"receipt", leaf.receipt.hex()}});
  json["verified_share"] = receipt.sample;
  json["root"] = receipt.root.hex();
  json["signer"] = receipt.signer.hex();
  json["signature"] = to_hex(receipt.signature);
  return json_pretty(json);
}

Result<CombinedReceipt> parse_combined(std::string_view text, const std::string& name) {
  FURLONG_TRY(const Json json, json_parse(text, name));
  JsonObject object(json, name);
  CombinedReceipt receipt;
  std::string format, store, plan, root, signer, signature;
  int version = 0;
  object.text("format", format);
  object.integer("version", version);
  FURLONG_CHECK(object.status());
  if (format != kFormat) return fail(Code::invalid, "{}: not a combined receipt", name);
  if (version != kVersion)
    return fail(Code::incompatible,
                "{}: version {} of combined receipts, this program reads {}: run the plan anew", name,
                version, kVersion);
  object.text("store", store);
  object.text("plan", plan);
  object.text("executor", receipt.executor);
  object.integer("executor_version", receipt.executor_version);
  object.text("root", root);
  object.text("signer", signer);
  object.text("signature", signature);
  const Json* shards = object.array("shards");
  object.number("verified_share", receipt.sample, 0, 1);
  object.require({"store", "plan", "executor", "executor_version", "shards", "verified_share", "root",
                  "signer", "signature"});
  FURLONG_CHECK(object.strict());
  FURLONG_TRY(receipt.store, Digest::parse(store));
  FURLONG_TRY(receipt.plan, Digest::parse(plan));
  FURLONG_TRY(receipt.root, Digest::parse(root));
  FURLONG_TRY(receipt.signer, PublicKey::parse(signer));
  FURLONG_TRY(const Bytes sealed, from_hex(signature));
  if (sealed.size() != receipt.signature.size())
    return fail(Code::invalid, "{}: a signature of {} bytes", name, sealed.size());
  std::copy(sealed.begin(), sealed.end(), receipt.signature.begin());
  for (std::size_t i = 0; i < shards->size(); ++i) {
    JsonObject entry((*shards)[i], fmt::format("{}: shards[{}]", name, i));
    std::uint64_t shard = 0;
    std::string claim, address;
    entry.integer("shard", shard, 0, kJoin - 1);
    entry.text("claim", claim);
    entry.text("receipt", address);
    entry.require({"shard", "claim", "receipt"});
    FURLONG_CHECK(entry.strict());
    CombinedReceipt::Leaf leaf{static_cast<ShardId>(shard), {}, {}};
    FURLONG_TRY(leaf.claim, Digest::parse(claim));
    FURLONG_TRY(leaf.receipt, Digest::parse(address));
    receipt.leaves.push_back(leaf);
  }
  return receipt;
}

Status check_combined(const CombinedReceipt& receipt, const Plan& plan, const Store& store) {
  if (receipt.store != plan.store || receipt.plan != blake2b_256(print_plan(plan)))
    return fail(Code::mismatch, "the combined receipt is of the plan {}, not {}", receipt.plan.brief(),
                blake2b_256(print_plan(plan)).brief());
  if (receipt.executor != plan.executor || receipt.executor_version != plan.executor_version)
    return fail(Code::mismatch, "the combined receipt is of the executor {} {}, the plan of {} {}",
                receipt.executor, receipt.executor_version, plan.executor, plan.executor_version);
  for (const auto& leaf : receipt.leaves) {
    const PlanShard* const shard = plan.find(leaf.shard);
    if (shard == nullptr)
      return fail(Code::mismatch, "the combined receipt has a shard {}, and the plan has none", leaf.shard);
    FURLONG_TRY(const Claim claim, make_claim(store, shard->units));
    if (leaf.claim != claim.digest(plan.executor, plan.executor_version))
      return fail(Code::mismatch, "the combined receipt has another claim for shard {} than the store",
                  leaf.shard);
  }
  FURLONG_TRY(const Digest root, tree_root(plan.tree, receipt.leaves));
  if (root != receipt.root)
    return fail(Code::mismatch, "the combined receipt's root {} is not that of its shards, {}",
                receipt.root.brief(), root.brief());
  return furlong::verify(message(receipt), receipt.signature, receipt.signer);
}

}  // namespace furlong::shard
