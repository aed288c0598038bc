#include "furlong/fleet/hub/served_manifest.h"

namespace furlong::fleet {
namespace {

/// After a rotation of the root, until something is published under it.
std::string why_no_machine_takes(const CheckedBody& body) {
  if (!body.manifest || body.manifest->root == body.root.document.version) return {};
  return fmt::format(
      "manifest {} was made under root {}, and root {} is served with it: no machine takes it until one is "
      "published (furlong fleet publish)",
      body.manifest->version, body.manifest->root, body.root.document.version);
}

}  // namespace

bool Serving::stopped() const {
  if (!checked || !checked->manifest || !checked->stop) return false;
  return checked->stop->from <= checked->manifest->version &&
         checked->stop->version > checked->manifest->lifts_stop;
}

ServedManifest::ServedManifest(std::filesystem::path file, Files& files, Clock& clock,
                               std::function<void(LogLevel, std::string_view)> say)
    : file_(std::move(file)), files_(files), clock_(clock), say_(std::move(say)) {}

std::shared_ptr<const Serving> ServedManifest::now() const {
  const std::scoped_lock lock(mutex_);
  return serving_;
}

void ServedManifest::look() {
  if (file_.empty()) return;
  const std::scoped_lock turn(working_);
  look_at_file();
}

void ServedManifest::look_at_file() {
  const auto text = files_.read(file_, largest_manifest_body);
  if (!text) {
    seen_.reset();
    return tell(text.error().code() == Code::unavailable
                    ? fmt::format("{}: there is no such file", file_.string())
                    : text.error().text());
  }
  if (seen_ == *text) {
    if (unwritten_) write();
    return;
  }
  seen_ = *text;
  const Status taken = take(*text);
  if (!taken) return tell(fmt::format("{}: {}", file_.string(), taken.error().text()));
  tell(why_no_machine_takes(*now()->checked), "it is served all the same");
  if (unwritten_) write();
}

Status ServedManifest::take(const std::string& text) {
  FURLONG_TRY(ManifestBody body, parse_manifest_body(text, "the manifest's file"));
  FURLONG_TRY(CheckedBody checked, check_body(body));
  FURLONG_CHECK(check_order(checked));
  const ManifestBody as_read = body;
  put_stop_back(body, checked);
  unwritten_ = body != as_read;
  const std::string bytes = unwritten_ ? print(body) : text;
  serve(std::move(body), std::move(checked), bytes);
  return {};
}

/// What machines would refuse after what they got here is not given out.
Status ServedManifest::check_order(const CheckedBody& next) const {
  const auto serving = now();
  if (!serving->checked) return {};
  const CheckedBody& before = *serving->checked;
  const std::uint64_t root = next.root.document.version, root_before = before.root.document.version;
  if (root < root_before)
    return fail(Code::denied, "root {} is older than root {}, which was served", root, root_before);
  if (root > root_before || !before.manifest) return {};
  if (!next.manifest)
    return fail(Code::denied, "manifest {} was served, and now there is none", before.manifest->version);
  if (next.manifest->version < before.manifest->version)
    return fail(Code::denied, "manifest {} is older than manifest {}, which was served: machines refuse it",
                next.manifest->version, before.manifest->version);
  if (next.manifest->version == before.manifest->version && *next.manifest != *before.manifest)
    return fail(Code::denied,
                "manifest {} is another than the manifest {} that was served: machines refuse it",
                next.manifest->version, before.manifest->version);
  return {};
}

void ServedManifest::put_stop_back(ManifestBody& body, CheckedBody& checked) const {
  const auto serving = now();
  if (!serving->checked || !serving->checked->stop || !checked.manifest) return;
  const StopDocument& served = *serving->checked->stop;
  if (!open_stop(checked.root.document, *serving->body.stop)) return;  // a root with other stop keys ended it
  if (checked.stop && checked.stop->version >= served.version) return;
  if (checked.manifest->lifts_stop >= served.version) return;
  body.stop = serving->body.stop;
  checked.stop = served;
  say_(LogLevel::warning,
       fmt::format(
           "manifest: the file has lost stop {}, which holds until a manifest lifts it; it is put back",
           served.version));
}

void ServedManifest::serve(ManifestBody body, CheckedBody checked, std::string text) {
  auto next = std::make_shared<Serving>();
  next->document = make_document(std::move(text));
  next->body = std::move(body);
  next->checked = std::move(checked);
  std::string what = fmt::format("root {}", next->checked->root.document.version);
  if (next->checked->manifest)
    what = fmt::format("version {} for {}, {:g}% of the machines{}", next->checked->manifest->version,
                       next->checked->manifest->channel, next->checked->manifest->percent,
                       next->stopped() ? ", stopped" : "");
  {
    const std::scoped_lock lock(mutex_);
    serving_ = std::move(next);
  }
  say_(LogLevel::info, fmt::format("manifest: {} is served", what));
}

/// Once each, since the file is looked at all the time.
void ServedManifest::tell(std::string problem, std::string_view what_now) {
  const auto before = now();
  if (before->problem == problem) return;
  auto next = std::make_shared<Serving>(*before);
  next->problem = problem;
  {
    const std::scoped_lock lock(mutex_);
    serving_ = std::move(next);
  }
  if (!problem.empty())
    say_(LogLevel::error, fmt::format("manifest: {}; {}", problem,
                                      !what_now.empty()  ? what_now
                                      : before->document ? "the last good one goes on being served"
                                                         : "none is served"));
}

Result<StopDocument> ServedManifest::stop(const KeyPair& key, std::uint64_t version) {
  const std::scoped_lock turn(working_);
  if (!file_.empty()) look_at_file();
  const auto serving = now();
  if (!serving->checked || !serving->checked->manifest) return fail(Code::invalid, "no manifest is served");
  if (serving->checked->manifest->version != version)
    return fail(Code::invalid, "manifest {} is served now, and not manifest {}",
                serving->checked->manifest->version, version);
  if (serving->stopped())
    return fail(Code::invalid, "manifest {} is stopped already", serving->checked->manifest->version);
  const RootDocument& root = serving->checked->root.document;
  const auto& before = serving->checked->stop;
  FURLONG_TRY(const StopDocument next,
              next_stop(root, *serving->checked->manifest, before ? &*before : nullptr, 0, clock_.wall_us()));
  Envelope envelope = envelope_of(next);
  add_signature(envelope, key);
  FURLONG_CHECK_DOING(open_stop(root, envelope), "the hub's stop key");
  ManifestBody body = serving->body;
  body.stop = std::move(envelope);
  FURLONG_TRY(CheckedBody checked, check_body(body));
  std::string text = print(body);
  FURLONG_CHECK(parse_manifest_body(text, "the stopped manifest"));
  serve(std::move(body), std::move(checked), std::move(text));
  write();
  return next;
}

void ServedManifest::write() {
  // A publisher may have been here since the last look: what it wrote is taken first, and has the stop put
  // in. One that writes in this very moment is overwritten all the same: the file has no lock.
  if (const auto text = files_.read(file_, largest_manifest_body); text && seen_ != *text) {
    seen_ = *text;
    if (const Status taken = take(*text); !taken) {
      unwritten_ = true;
      return tell(fmt::format("{}: {}", file_.string(), taken.error().text()));
    }
    if (!unwritten_) return tell("");
  }
  const std::string bytes = now()->document->body;
  const Status written = files_.write_atomic(file_, bytes);
  unwritten_ = !written;
  if (written) seen_ = bytes;
  tell(written ? "" : fmt::format("the stop is served, but not in the file: {}", written.error().text()));
}

}  // namespace furlong::fleet
