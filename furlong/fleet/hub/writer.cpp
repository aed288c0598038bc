#include "furlong/fleet/hub/writer.h"

#include <chrono>

namespace furlong::fleet {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// What one batch may be guilty of; others that were in its transaction may be stored all the same.
bool may_be_one_batch(Code code) {
  return code == Code::invalid || code == Code::internal || code == Code::incompatible;
}

}  // namespace

struct Writer::Job {
  std::optional<Place> place;
  IncomingBatch batch;
  std::function<Status(Store&)> work;  ///< empty: a batch
  BatchOutcome outcome;
  SteadyClock::time_point since = SteadyClock::now();
  bool done = false;
  Status status;
};

Writer::Place::Place(Place&& other) noexcept
    : writer_(std::exchange(other.writer_, nullptr)), bytes_(other.bytes_) {}

Writer::Place::~Place() {
  if (writer_ != nullptr) writer_->release(bytes_);
}

Writer::Writer(OpenStore open, Options options, std::function<void()> changed)
    : open_(std::move(open)), options_(options), changed_(std::move(changed)), thread_([this] { loop(); }) {}

Writer::~Writer() { stop(); }

void Writer::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<Writer::Place> Writer::reserve(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const bool room =
      counts_.places < options_.most_places && counts_.place_bytes + bytes <= options_.most_bytes;
  if (!room && counts_.places > 0) return std::nullopt;
  ++counts_.places;
  counts_.place_bytes += bytes;
  return Place(*this, bytes);
}

void Writer::release(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  --counts_.places;
  counts_.place_bytes -= bytes;
}

Result<Writer::Written> Writer::add(Place place, IncomingBatch batch) {
  auto job = std::make_shared<Job>();
  job->place.emplace(std::move(place));
  job->batch = std::move(batch);
  FURLONG_CHECK(wait(job));
  return Written{std::move(job->batch), std::move(job->outcome)};
}

Status Writer::run(std::function<Status(Store&)> work) {
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  return wait(job);
}

Status Writer::wait(const std::shared_ptr<Job>& job) {
  std::unique_lock lock(mutex_);
  if (stopping_) return fail(Code::unavailable, "the hub is stopping");
  queue_.push_back(job);
  work_.notify_one();
  const auto limit = std::chrono::duration<double>(options_.wait_s);
  if (!done_.wait_for(lock, limit, [&] { return job->done; }))
    return fail(Code::timeout, "the store did not answer in {:g} s", options_.wait_s);
  return job->status;
}

WriterCounts Writer::counts() const {
  const std::scoped_lock lock(mutex_);
  WriterCounts counts = counts_;
  counts.queued = queue_.size();
  return counts;
}

std::vector<std::shared_ptr<Writer::Job>> Writer::next_group() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  std::vector<std::shared_ptr<Job>> group;
  std::size_t bytes = 0;
  while (!queue_.empty() && group.size() < options_.commit_batches) {
    const std::shared_ptr<Job>& next = queue_.front();
    const bool alone = next->work != nullptr;
    if (!group.empty() && (alone || bytes + next->batch.body.size() > options_.commit_bytes)) break;
    bytes += next->batch.body.size();
    counts_.wait_s += seconds_since(next->since);
    group.push_back(next);
    queue_.pop_front();
    if (alone) break;
  }
  return group;
}

void Writer::loop() {
  while (true) {
    const auto group = next_group();
    if (group.empty()) return;  // stopped, and nothing is left
    write(group);
    if (changed_) changed_();
  }
}

Store* Writer::open_if_needed(const std::vector<std::shared_ptr<Job>>& group) {
  if (store_ != nullptr) return store_.get();
  auto store = open_();
  if (store) {
    store_ = *std::move(store);
    return store_.get();
  }
  note_failure(store.error(), group.front()->work == nullptr);
  for (const auto& job : group) finish(*job, store.error());
  return nullptr;
}

void Writer::write(const std::vector<std::shared_ptr<Job>>& group) {
  Store* const store = open_if_needed(group);
  if (store == nullptr) return;
  if (group.front()->work == nullptr) return write_batches(*store, group);
  Status status = group.front()->work(*store);
  if (status)
    note_success();
  else if (status.error().code() != Code::invalid)
    note_failure(status.error(), false);
  finish(*group.front(), std::move(status));
}

void Writer::write_batches(Store& store, const std::vector<std::shared_ptr<Job>>& group) {
  std::vector<IncomingBatch> batches;
  batches.reserve(group.size());
  for (const auto& job : group) batches.push_back(std::move(job->batch));
  const auto begin = SteadyClock::now();
  auto outcomes = store.add(batches);
  const double store_s = seconds_since(begin);
  for (std::size_t i = 0; i < group.size(); ++i) group[i]->batch = std::move(batches[i]);
  if (outcomes && outcomes->size() == group.size()) {
    {
      const std::scoped_lock lock(mutex_);
      ++counts_.commits;
      counts_.batches += group.size();
      counts_.store_s += store_s;
    }
    note_success();
    for (std::size_t i = 0; i < group.size(); ++i) {
      group[i]->outcome = std::move((*outcomes)[i]);
      finish(*group[i], {});
    }
    return;
  }
  const Error error = outcomes ? fail(Code::internal, "the store told {} outcomes of {} batches",
                                      outcomes->size(), group.size())
                               : outcomes.error();
  if (group.size() > 1 && may_be_one_batch(error.code())) {
    for (const auto& job : group) write_batches(store, {job});
    return;
  }
  note_failure(error, true);
  for (const auto& job : group) finish(*job, error);
}

void Writer::note_success() {
  const std::scoped_lock lock(mutex_);
  counts_.failing.reset();
  counts_.failing_batches = false;
}

void Writer::note_failure(const Error& error, bool of_batches) {
  const std::scoped_lock lock(mutex_);
  ++counts_.failures;
  counts_.failing = error;
  counts_.failing_batches |= of_batches;
}

void Writer::finish(Job& job, Status status) {
  // The place goes before the caller goes on, so that it finds room for its next batch.
  job.place.reset();
  {
    const std::scoped_lock lock(mutex_);
    job.status = std::move(status);
    job.done = true;
  }
  done_.notify_all();
}

}  // namespace furlong::fleet
