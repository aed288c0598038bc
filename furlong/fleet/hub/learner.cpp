#include "furlong/fleet/hub/learner.h"

#include <algorithm>
#include <chrono>

#include "furlong/base/json.h"

namespace furlong::fleet {
namespace {

constexpr std::chrono::seconds look_every{1};  // other processes write to the store as well

/// The list shows the choice; the evidence is at the card.
Json brief_card(Json card) {
  if (const auto rows = card.find("rows"); rows != card.end())
    for (Json& row : *rows)
      for (const char* key : {"variants", "set_aside", "why"}) row.erase(key);
  return card;
}

/// How much speaks for a card: machines before races, since one machine may make up as many races as it
/// likes.
std::pair<int, std::int64_t> weight(const CardEvidence& card) {
  std::pair<int, std::int64_t> sum;
  for (const RowEvidence& row : card.rows) {
    sum.first = std::max(sum.first, row.machines);
    sum.second += row.races;
  }
  return sum;
}

/// How many were left out.
std::size_t keep_heaviest(std::vector<CardEvidence>& cards, std::size_t most) {
  if (cards.size() <= most) return 0;
  const std::size_t out = cards.size() - most;
  std::ranges::stable_sort(cards, std::ranges::greater{}, weight);
  cards.resize(most);
  std::ranges::sort(cards, {}, &CardEvidence::key);
  return out;
}

}  // namespace

Learned learn(Aggregate aggregate, const Regressions& regressions, std::size_t most) {
  Learned learned;
  learned.cards_left_out = keep_heaviest(aggregate.cards, most);
  learned.races = aggregate.races;
  learned.updated_us = aggregate.updated_us;
  learned.window = aggregate.window;
  Json head{{"schema", 1}};
  put_time(head, "updated", aggregate.updated_us);
  head["window_days"] = aggregate.options.window_days;
  Json list = head;
  list["races"] = aggregate.races;
  if (learned.cards_left_out > 0) list["cards_left_out"] = learned.cards_left_out;
  list["cards"] = Json::array();
  for (const CardEvidence& card : aggregate.cards) {
    Json json = to_json(card);
    Json one = head;
    one.update(json);
    learned.cards.push_back({.key = card.key,
                             .label = card.label,
                             .silicon = card.silicon.hash,
                             .aliases = card.aliases,
                             .document = make_document(one)});
    list["cards"].push_back(brief_card(std::move(json)));
  }
  learned.list = make_document(list);
  learned.tuning = make_document(record::print(to_tuning(aggregate)));
  Json slower{{"schema", 1}};
  slower.update(to_json(regressions));
  learned.regressions = make_document(slower);
  learned.regression_count = regressions.regressions.size();
  return learned;
}

const Learned::Card* Learned::find(std::string_view name) const {
  const auto only = [&](const auto& fits) -> const Card* {
    const auto first = std::ranges::find_if(cards, fits);
    if (first == cards.end()) return nullptr;
    return std::find_if(std::next(first), cards.end(), fits) == cards.end() ? &*first : nullptr;
  };
  if (const Card* card = only([&](const Card& each) { return each.key == name; })) return card;
  if (const Card* card = only([&](const Card& each) { return each.label == name; })) return card;
  if (const Card* card =
          only([&](const Card& each) { return std::ranges::find(each.aliases, name) != each.aliases.end(); }))
    return card;
  return only([&](const Card& each) { return !each.silicon.empty() && each.silicon == name; });
}

Learner::Learner(Options options, OpenStore open, Clock& clock,
                 std::function<void(LogLevel, std::string_view)> say, After after)
    : options_(std::move(options)),
      open_(std::move(open)),
      clock_(clock),
      say_(std::move(say)),
      after_(std::move(after)) {}

Learner::~Learner() { stop(); }

void Learner::start() {
  thread_ = std::thread([this] { loop(); });
}

void Learner::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Learner::nudge() {
  {
    const std::scoped_lock lock(mutex_);
    nudged_ = true;
  }
  wake_.notify_all();
}

void Learner::loop() {
  while (true) {
    step();
    std::unique_lock lock(mutex_);
    // A store that is written to all the time is looked at a few times a second, not after each write.
    wake_.wait_for(lock, look_every / 4, [&] { return stopping_; });
    wake_.wait_for(lock, look_every - look_every / 4, [&] { return stopping_ || nudged_; });
    nudged_ = false;
    if (stopping_) return;
  }
}

void Learner::step() {
  note(look());
  if (const auto learned = latest(); learned != nullptr && after_) after_(*learned);
}

Status Learner::look() {
  if (store_ == nullptr) {
    FURLONG_TRY(store_, open_());
  }
  FURLONG_TRY(const StoreTotals totals, store_->totals());
  std::shared_ptr<const record::Tuning> in_force = options_.in_force ? options_.in_force() : nullptr;
  const std::int64_t now_ns = clock_.now_ns();
  {
    const std::scoped_lock lock(mutex_);
    const bool first = latest_ == nullptr;
    if (totals.change != totals_.change || (first && changed_ns_ == 0)) changed_ns_ = now_ns;
    totals_ = totals;
    if (!first && latest_->change == totals.change && latest_->previous == in_force) return {};
    if (now_ns < next_ns_) return {};
    next_ns_ = now_ns + static_cast<std::int64_t>(options_.refresh_s * 1e9);
  }
  return make(totals.change, std::move(in_force));
}

Status Learner::make(std::uint64_t change, std::shared_ptr<const record::Tuning> in_force) {
  const std::int64_t begin_ns = clock_.now_ns();
  AggregateOptions options = options_.aggregate;
  if (in_force != nullptr) options.previous = *in_force;
  FURLONG_TRY(Aggregate made, aggregate(open_, options));
  FURLONG_TRY(const Regressions slower, find_regressions(open_, options_.regressions));
  auto learned = std::make_shared<Learned>(learn(std::move(made), slower));
  learned->change = change;
  learned->previous = std::move(in_force);
  learned->made_ns = clock_.now_ns();
  learned->seconds = static_cast<double>(learned->made_ns - begin_ns) * 1e-9;
  {
    const std::scoped_lock lock(mutex_);
    latest_ = learned;
    // What takes long is not made all the time.
    next_ns_ = std::max(next_ns_, learned->made_ns + (learned->made_ns - begin_ns));
  }
  return {};
}

void Learner::note(const Status& status) {
  std::optional<Error> before;
  {
    const std::scoped_lock lock(mutex_);
    before = problem_;
    problem_.reset();
    if (!status) problem_ = status.error();
  }
  if (!status && (!before || before->text() != status.error().text()))
    say_(LogLevel::error,
         fmt::format("store: {}; the last results go on being served", status.error().text()));
  if (status && before) say_(LogLevel::info, "store: it answers again");
}

std::shared_ptr<const Learned> Learner::latest() const {
  const std::scoped_lock lock(mutex_);
  return latest_;
}

StoreTotals Learner::totals() const {
  const std::scoped_lock lock(mutex_);
  return totals_;
}

double Learner::stale_s() const {
  const std::scoped_lock lock(mutex_);
  if (latest_ != nullptr && latest_->change == totals_.change) return 0;
  return static_cast<double>(clock_.now_ns() - changed_ns_) * 1e-9;
}

std::optional<Error> Learner::problem() const {
  const std::scoped_lock lock(mutex_);
  return problem_;
}

}  // namespace furlong::fleet
