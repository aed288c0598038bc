// Variant names: the tags of the values that are not the default, joined by '-' in knob order.

#include <algorithm>
#include <map>

#include "furlong/base/text.h"
#include "furlong/lattice/internal/variant_names.h"
#include "furlong/lattice/lattice.h"

namespace furlong::lattice {
namespace {

constexpr std::size_t kLongestName = 4096;

/// Whether the pieces at `at` begin with the tag's pieces; how many those are, else 0.
std::size_t match(const std::vector<std::string>& pieces, std::size_t at, const std::string& tag) {
  const auto wanted = split(tag, '-');
  if (at + wanted.size() > pieces.size()) return 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (pieces[at + i] != wanted[i]) return 0;
  return wanted.size();
}

/// All ways to read a name, at most two of them: one is the answer, two make the name ambiguous.
class Reader {
 public:
  Reader(const Lattice& lattice, std::string_view name) : lattice_(lattice), pieces_(split(name, '-')) {}

  std::vector<Point> readings() {
    Point point = lattice_.base();
    read(0, 0, point);
    return found_;
  }
  std::size_t furthest() const { return furthest_; }
  const std::vector<std::string>& pieces() const { return pieces_; }

 private:
  /// Reads pieces from `at` with tags of knob `first` and later ones.
  void read(std::size_t at, std::size_t first, Point& point) {
    furthest_ = std::max(furthest_, at);
    if (at == pieces_.size()) {
      found_.push_back(point);
      return;
    }
    if (const auto known = dead_.find(at); known != dead_.end() && first >= known->second) return;
    const std::size_t before = found_.size();
    for (std::size_t k = first; k < lattice_.knobs.size() && found_.size() < 2; ++k) {
      const Knob& knob = lattice_.knobs[k];
      for (std::size_t v = 0; v < knob.values.size() && v < knob.tags.size() && found_.size() < 2; ++v) {
        if (v == knob.default_index || knob.tags[v].empty()) continue;
        const std::size_t length = match(pieces_, at, knob.tags[v]);
        if (length == 0) continue;
        point.indices[k] = static_cast<std::uint32_t>(v);
        read(at + length, k + 1, point);
        point.indices[k] = static_cast<std::uint32_t>(knob.default_index);
      }
    }
    // Fewer knobs to choose from read no more than these did.
    if (found_.size() == before) {
      const auto [entry, added] = dead_.emplace(at, first);
      if (!added) entry->second = std::min(entry->second, first);
    }
  }

  const Lattice& lattice_;
  std::vector<std::string> pieces_;
  std::size_t furthest_ = 0;
  std::map<std::size_t, std::size_t> dead_;  // piece → the first knob from which nothing reads it
  std::vector<Point> found_;
};

Error not_read(const Lattice& lattice, std::string_view name, const Reader& reader) {
  const std::string& culprit = reader.pieces()[std::min(reader.furthest(), reader.pieces().size() - 1)];
  std::vector<std::string> tags;
  for (const auto& knob : lattice.knobs) {
    for (const auto& tag : knob.tags) {
      if (tag.empty()) continue;
      if (tag == culprit)
        return fail(Code::invalid,
                    "variant '{}': '{}' (knob '{}') stands out of place; tags follow the order of the knobs",
                    name, culprit, knob.name);
      tags.push_back(tag);
    }
  }
  return fail(Code::invalid, "variant '{}': '{}' is no tag of this lattice{}", name, culprit,
              nearest_choices(culprit, tags));
}

}  // namespace

std::string variant_name(const Lattice& lattice, const Point& point) {
  std::string name;
  for (std::size_t k = 0; k < lattice.knobs.size() && k < point.indices.size(); ++k) {
    const Knob& knob = lattice.knobs[k];
    const std::size_t v = point.indices[k];
    if (v == knob.default_index || v >= knob.tags.size()) continue;
    if (!name.empty()) name += '-';
    name += knob.tags[v];
  }
  return name.empty() ? "base" : name;
}

Result<Point> parse_variant(const Lattice& lattice, std::string_view name) {
  if (name == "base") return lattice.base();
  if (name.empty()) return fail(Code::invalid, "an empty variant name; the default point is 'base'");
  if (name.size() > kLongestName)
    return fail(Code::invalid, "a variant name of {} bytes; {} at most", name.size(), kLongestName);
  Reader reader(lattice, name);
  const auto readings = reader.readings();
  if (readings.empty()) return not_read(lattice, name, reader);
  if (readings.size() > 1)
    return fail(Code::invalid, "variant '{}' has two readings; the tags of this lattice are ambiguous", name);
  return readings[0];
}

namespace internal {
namespace {

/// A place inside a name being read: what has been read of it, seen from one point's side.
struct Place {
  std::size_t knob = 0;   // tags of this knob and later ones may follow
  std::size_t value = 0;  // with `offset` > 0: the tag being read is this value's of knob - 1
  std::size_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

struct Pair {
  Place a, b;
  bool apart = false;  // the two points already differ
  auto operator<=>(const Pair&) const = default;
};

class AmbiguitySearch {
 public:
  explicit AmbiguitySearch(const Lattice& lattice) {
    for (const auto& knob : lattice.knobs) {
      auto& tags = tags_.emplace_back();
      for (std::size_t v = 0; v < knob.values.size() && v < knob.tags.size(); ++v)
        tags.push_back(v == knob.default_index || knob.tags[v].empty() ? std::vector<std::string>()
                                                                       : split(knob.tags[v], '-'));
    }
  }

  /// A name with two readings, or empty. The search is over pairs of places that the same pieces lead to.
  std::string run() {
    std::map<Pair, std::string> seen{{Pair{}, ""}};
    std::vector<Pair> todo{Pair{}};
    while (!todo.empty()) {
      const Pair pair = todo.back();
      todo.pop_back();
      const std::string name = seen.at(pair);
      if (pair.apart && pair.a.offset == 0 && pair.b.offset == 0) return name;
      for (const auto& [next_a, piece_a] : steps(pair.a)) {
        for (const auto& [next_b, piece_b] : steps(pair.b)) {
          if (piece_a != piece_b) continue;
          const bool differ = next_a.knob != next_b.knob || next_a.value != next_b.value;
          Pair next{next_a, next_b, pair.apart || differ};
          finish(next.a);
          finish(next.b);
          if (seen.emplace(next, name.empty() ? piece_a : name + "-" + piece_a).second) todo.push_back(next);
        }
      }
    }
    return "";
  }

 private:
  using Step = std::pair<Place, std::string>;

  /// Every piece that may come next, and the place after it.
  std::vector<Step> steps(const Place& place) const {
    if (place.offset > 0) {
      const auto& tag = tags_[place.knob - 1][place.value];
      return {{Place{place.knob, place.value, place.offset + 1}, tag[place.offset]}};
    }
    std::vector<Step> all;
    for (std::size_t k = place.knob; k < tags_.size(); ++k)
      for (std::size_t v = 0; v < tags_[k].size(); ++v)
        if (!tags_[k][v].empty()) all.push_back({Place{k + 1, v, 1}, tags_[k][v][0]});
    return all;
  }

  /// At the end of a tag the place forgets which value it was.
  void finish(Place& place) const {
    if (place.offset == tags_[place.knob - 1][place.value].size()) place.value = place.offset = 0;
  }

  std::vector<std::vector<std::vector<std::string>>> tags_;  // knob → value → pieces
};

}  // namespace

std::string ambiguous_name(const Lattice& lattice) {
  // Without '-' inside tags, a name's pieces are its tags: two readings need two equal tags.
  std::map<std::string, std::size_t> first_knob;
  bool joined = false;
  for (std::size_t k = 0; k < lattice.knobs.size(); ++k) {
    const Knob& knob = lattice.knobs[k];
    for (std::size_t v = 0; v < knob.tags.size() && v < knob.values.size(); ++v) {
      const std::string& tag = knob.tags[v];
      if (v == knob.default_index || tag.empty()) continue;
      if (tag == "base") return tag;
      joined = joined || tag.find('-') != std::string::npos;
      if (!first_knob.emplace(tag, k).second) return tag;
    }
  }
  return joined ? AmbiguitySearch(lattice).run() : "";
}

}  // namespace internal
}  // namespace furlong::lattice
