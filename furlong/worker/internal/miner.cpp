#include "furlong/worker/internal/miner.h"

#include <algorithm>
#include <bit>

#include "furlong/program/lottery/recipe.h"

namespace furlong::worker {
namespace {

namespace lottery = program::lottery;

constexpr std::uint64_t kBitsOfAWord = 32;

template <class T>
Bytes scalar_of(T value) {
  Bytes bytes(sizeof value);
  store_le(bytes.data(), value);
  return bytes;
}

Status check_is_lottery(const program::Program& program) {
  const auto names = lottery::argument_names();
  bool same = program.recipe && program.arguments.size() == names.size();
  for (std::size_t i = 0; same && i < names.size(); ++i) same = program.arguments[i].name == names[i];
  if (same) return {};
  return fail(Code::invalid, "a worker serves the lottery, and program '{}' has other arguments",
              program.name);
}

}  // namespace

Miner::Miner(device::Device& device, Serving serving) : device_(device), serving_(std::move(serving)) {}

Result<std::unique_ptr<Miner>> Miner::make(device::Device& device, Serving serving) {
  FURLONG_CHECK(check_is_lottery(serving.instance->program()));
  std::unique_ptr<Miner> miner(new Miner(device, std::move(serving)));
  const lattice::Value* count = nullptr;
  const lattice::Environment& problem = miner->serving_.instance->problem();
  if (const auto found = problem.find("count"); found != problem.end()) count = &found->second;
  if (count == nullptr || !count->integer() || *count->integer() < 1)
    return fail(Code::invalid, "the pack's problem has no count of nonces");
  // Whole words of hits, so that the launches of a chunk may share them.
  miner->launch_nonces_ =
      (static_cast<std::uint64_t>(*count->integer()) + kBitsOfAWord - 1) / kBitsOfAWord * kBitsOfAWord;
  FURLONG_TRY(miner->hashes_, device.allocate(miner->launch_nonces_ * sizeof(std::uint64_t)));
  FURLONG_TRY(miner->hits_, device.allocate(miner->launch_nonces_ / 8));
  return miner;
}

void Miner::serve(Serving serving) {
  serving_ = std::move(serving);
  plans_.clear();
}

Result<device::Launch> Miner::launch(std::uint64_t start, std::uint32_t count, std::uint64_t target) {
  auto plan = plans_.find(count);
  if (plan == plans_.end()) {
    if (plans_.size() >= 16) plans_.clear();  // remainders of jobs differ, and whole launches come back
    const lattice::Point points[] = {serving_.point};
    FURLONG_TRY(program::RunInputs inputs, serving_.instance->timed_sizes(points));
    inputs.problem["count"] = lattice::Value(static_cast<std::int64_t>(count));
    FURLONG_TRY(auto plans, serving_.instance->launches(serving_.point, inputs));
    if (plans.size() != 1) return fail(Code::invalid, "the lottery has one kernel, not {}", plans.size());
    plan = plans_.emplace(count, std::move(plans[0])).first;
  }
  device::Launch launch;
  launch.module = serving_.module.get();
  launch.entry = plan->second.entry;
  launch.grid = plan->second.grid;
  launch.block = plan->second.block;
  launch.shared_bytes = plan->second.shared_bytes;
  for (const std::size_t argument : plan->second.arguments) {
    switch (argument) {
      case lottery::kDataset:
        launch.arguments.emplace_back(serving_.buffers->argument(argument));
        break;
      case lottery::kStart:
        launch.arguments.emplace_back(scalar_of(start));
        break;
      case lottery::kCount:
        launch.arguments.emplace_back(scalar_of(count));
        break;
      case lottery::kTarget:
        launch.arguments.emplace_back(scalar_of(target));
        break;
      case lottery::kHashes:
        launch.arguments.emplace_back(device::BufferArgument{hashes_.get(), 0});
        break;
      default:
        launch.arguments.emplace_back(device::BufferArgument{hits_.get(), 0});
    }
  }
  return launch;
}

Status Miner::run(std::uint64_t start, std::uint64_t nonces, std::uint64_t target) {
  start_ = start;
  nonces_ = last_count_ = 0;
  target_ = target;
  samples_.clear();
  FURLONG_CHECK(hits_->fill(0, 0, hits_->size()));
  std::uint64_t done = 0;
  std::uint32_t count = 0;
  while (done < nonces) {
    count = static_cast<std::uint32_t>(std::min(launch_nonces_, nonces - done));
    FURLONG_TRY(const device::Launch one, launch(start + done, count, target));
    FURLONG_CHECK(device_.launch(one));
    done += count;
  }
  FURLONG_CHECK(device_.finish());
  hit_bits_.resize(hits_->size());
  FURLONG_CHECK(hits_->read(0, hit_bits_));
  last_count_ = count;
  nonces_ = nonces;
  return {};
}

Result<std::uint64_t> Miner::reference_hash(std::uint64_t nonce) const {
  std::vector<Bytes> inputs(lottery::kArguments), expected;
  inputs[lottery::kStart] = scalar_of(nonce);
  inputs[lottery::kCount] = scalar_of(std::uint32_t{1});
  inputs[lottery::kTarget] = scalar_of(target_);
  const program::Program& program = serving_.instance->program();
  FURLONG_CHECK(program.recipe->reference(program, serving_.instance->problem(), inputs, expected));
  if (expected.size() <= lottery::kHashes || expected[lottery::kHashes].size() != sizeof(std::uint64_t))
    return fail(Code::internal, "the reference gave no hash");
  return load_le<std::uint64_t>(expected[lottery::kHashes].data());
}

Result<std::vector<Find>> Miner::finds() {
  std::vector<Find> finds;
  for (std::size_t byte = 0; byte < hit_bits_.size(); ++byte) {
    if (hit_bits_[byte] == 0) continue;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((hit_bits_[byte] >> bit & 1u) == 0) continue;
      // The launches of a chunk share their bits: any of the nonces in this place may be meant.
      const std::uint64_t place = 8 * byte + bit;
      bool any = false;
      for (std::uint64_t offset = place; offset < nonces_; offset += launch_nonces_) {
        FURLONG_TRY(const std::uint64_t hash, reference_hash(start_ + offset));
        if (hash >= target_) continue;
        finds.push_back({start_ + offset, hash});
        any = true;
      }
      if (!any)
        return fail(Code::mismatch,
                    "{} told nonce {:016x} as a find under target {:016x}, and the reference does not",
                    serving_.variant, start_ + place, target_);
    }
  }
  std::ranges::sort(finds, {}, [&](const Find& find) { return find.nonce - start_; });
  return finds;
}

Status Miner::sample(int count, Random& random) {
  samples_.clear();
  if (last_count_ == 0) return {};
  for (int i = 0; i < count; ++i) {
    const std::uint64_t place = random.below(last_count_);
    Bytes bytes(sizeof(std::uint64_t));
    FURLONG_CHECK(hashes_->read(place * sizeof(std::uint64_t), bytes));
    samples_.emplace_back(place, load_le<std::uint64_t>(bytes.data()));
  }
  return {};
}

Status Miner::check() const {
  for (const auto& [place, got] : samples_) {
    const std::uint64_t nonce = start_ + (nonces_ - last_count_) + place;
    FURLONG_TRY(const std::uint64_t hash, reference_hash(nonce));
    if (got != hash)
      return fail(Code::mismatch, "{} gives hash {:016x} for nonce {:016x}, and the reference {:016x}",
                  serving_.variant, got, nonce, hash);
    if (hash < target_ && (hit_bits_[place / 8] >> (place % 8) & 1u) == 0)
      return fail(Code::mismatch, "{} did not tell nonce {:016x}, whose hash is under the target",
                  serving_.variant, nonce);
  }
  return {};
}

}  // namespace furlong::worker
