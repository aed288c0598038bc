// Any sequence of bodies, whole, flipped, cut, spliced or made up, of clock jumps, restarts, failed writes
// and damaged states: what the updater obeys is always one of the documents that the right keys signed,
// nothing goes back, and an expired manifest pins nothing.

#include <cstdlib>
#include <map>
#include <set>

#include "furlong/base/bytes.h"
#include "furlong/base/os/clock.h"
#include "furlong/fleet/manifest/internal/testing.h"
#include "furlong/fleet/manifest/updater.h"

using namespace furlong;
using namespace furlong::fleet;
using namespace furlong::fleet::testing_support;

namespace {

class WallClock : public Clock {
 public:
  std::int64_t now_ns() override { return 0; }
  std::int64_t wall_us() override { return wall; }
  void sleep_ns(std::int64_t) override {}
  std::int64_t wall = start_us + day_us;
};

/// All that was ever signed by the keys of this fleet.
struct Fleet {
  std::vector<Envelope> roots, manifests, stops;
  std::set<std::string> root_payloads, manifest_payloads, stop_payloads;
  std::map<std::string, std::string> variants;  ///< version → what its tuning names
  std::vector<std::string> bodies;

  Fleet() {
    RootDocument second = root_document(2);
    second.publish.keys = {test_key(4).public_key};
    roots = {signed_by(root_document(), {root_key()}), signed_by(second, {root_key()})};
    for (std::uint64_t version = 1; version <= 6; ++version) {
      const std::string variant = "v" + std::to_string(version);
      ManifestDocument document = manifest_document(version, variant);
      document.root = version <= 4 ? 1 : 2;
      document.lifts_stop = version == 4 ? 1 : 0;
      document.expires_us = start_us + static_cast<std::int64_t>(10 * version) * day_us;
      manifests.push_back(signed_by(document, {version <= 4 ? publish_key() : test_key(4)}));
      variants[std::to_string(version)] = variant;
    }
    for (std::uint64_t version = 1; version <= 2; ++version)
      stops.push_back(signed_by(stop_document(version, version + 1), {stop_key()}));
    for (const auto& each : roots) root_payloads.insert(each.payload);
    for (const auto& each : manifests) manifest_payloads.insert(each.payload);
    for (const auto& each : stops) stop_payloads.insert(each.payload);
    for (const auto& manifest : manifests)
      bodies.push_back(print(ManifestBody{.roots = {}, .manifest = manifest, .stop = {}}));
    bodies.push_back(print(ManifestBody{.roots = roots, .manifest = manifests[4], .stop = stops[0]}));
    bodies.push_back(print(ManifestBody{.roots = roots, .manifest = manifests[3], .stop = stops[1]}));
    bodies.push_back(print(ManifestBody{.roots = {}, .manifest = {}, .stop = stops[0]}));
  }
};

const Fleet& fleet() {
  static const Fleet all;
  return all;
}

void demand(bool holds) {
  if (!holds) std::abort();
}

/// The input, a byte at a time; zeros after its end.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool done() const { return at_ >= text_.size(); }
  std::uint8_t byte() { return done() ? 0 : static_cast<std::uint8_t>(text_[at_++]); }
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : (byte() * 256u + byte()) % bound; }
  std::string_view take(std::size_t length) {
    const std::string_view part = text_.substr(std::min(at_, text_.size()), length);
    at_ += part.size();
    return part;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

class Run {
 public:
  explicit Run(std::string_view text) : in_(text) {
    files_.fault = [this](std::string_view operation, const std::filesystem::path&) -> Status {
      if (operation != "write" || !fail_write_) return {};
      fail_write_ = false;
      return fail(Code::exhausted, "full");
    };
    open();
  }
  void go() {
    for (int steps = 0; !in_.done() && steps < 64; ++steps) {
      step();
      check();
    }
  }

 private:
  void open() {
    auto opened = ManifestUpdater::open(
        print(fleet().roots[0]), {.machine = "0123456789abcdef", .channel = "stable", .version = "0.1.0"},
        "/data", files_, clock_);
    demand(opened.has_value());
    updater_ = *std::move(opened);
  }
  void feed(std::string_view body) { (void)updater_->verify(body); }
  std::string known() { return fleet().bodies[in_.below(fleet().bodies.size())]; }

  void step() {
    switch (in_.byte() % 8) {
      case 0:
        return feed(known());
      case 1: {
        std::string body = known();
        for (int flips = in_.byte() % 4; flips >= 0; --flips)
          body[in_.below(body.size())] = static_cast<char>(in_.byte());
        return feed(body);
      }
      case 2: {
        const std::string body = known();
        return feed(std::string_view(body).substr(0, in_.below(body.size())));
      }
      case 3:
        return feed(in_.take(in_.byte() * 4u));
      case 4: {
        // The signatures of one document under the bytes of another.
        ManifestBody body{.roots = {}, .manifest = fleet().manifests[in_.below(6)], .stop = {}};
        body.manifest->signatures = fleet().manifests[in_.below(6)].signatures;
        if (in_.byte() % 2 == 0) body.manifest->payload_type = fleet().stops[0].payload_type;
        return feed(print(body));
      }
      case 5:
        clock_.wall = start_us + static_cast<std::int64_t>(in_.byte()) * day_us / 2 - 5 * day_us;
        return;
      case 6:
        fail_write_ = in_.byte() % 2 == 0;
        return open();
      default:
        return damage();
    }
  }

  /// A state that was changed on the disk is refused or means what it says: signatures are checked again.
  void damage() {
    const auto file = manifest_state_file("/data");
    const auto text = files_.read(file);
    if (!text) return;
    std::string changed = *text;
    changed[in_.below(changed.size())] = static_cast<char>(in_.byte());
    fail_write_ = false;
    demand(files_.write_atomic(file, changed).has_value());
    open();
    check_obeys();
    demand(files_.write_atomic(file, *text).has_value());
    open();
  }

  void check_obeys() {
    const auto now = updater_->standing();
    if (!now) return;
    demand(now->version.empty() ? !now->tuning : fleet().variants.contains(now->version));
    if (!now->tuning) return;
    demand(now->tuning->find('"' + fleet().variants.at(now->version) + '"') != std::string::npos);
    demand(clock_.wall < start_us + std::stoll(now->version) * 10 * day_us);
  }

  void check() {
    check_obeys();
    const auto trust = updater_->trust();
    if (!trust) return;
    const Trust& has = **trust;
    demand(fleet().root_payloads.contains(has.root.envelope.payload));
    if (has.manifest) demand(fleet().manifest_payloads.contains(has.manifest->envelope.payload));
    if (has.stop) demand(fleet().stop_payloads.contains(has.stop->envelope.payload));
    const std::pair now{has.root.document.version, has.seen.version};
    demand(now >= before_);
    before_ = now;
  }

  Reader in_;
  FakeFiles files_;
  WallClock clock_;
  bool fail_write_ = false;
  std::unique_ptr<ManifestUpdater> updater_;
  std::pair<std::uint64_t, std::uint64_t> before_{0, 0};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Run(as_text({data, size})).go();
  return 0;
}
