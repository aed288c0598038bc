// metamath-verify: the databases of the package metamath-databases, read and verified by the library and by
// the program `metamath` (package metamath) in the same run, each on one core; then the same databases with
// planted faults, where both must name the same theorems.
//
// Times are processor time (user and system), which other work on the machine disturbs less than wall time
// does; the best of the repeats counts.

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <set>

#include "bench/harness.h"
#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"
#include "furlong/base/random.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/metamath/verify.h"

namespace {

using furlong::Code;
using furlong::fail;
using furlong::Result;
using furlong::Status;
using furlong::bench::Bench;
using furlong::bench::Better;
using furlong::shard::metamath::Assertion;
using furlong::shard::metamath::Database;
using furlong::shard::metamath::verify_database;
using furlong::shard::metamath::VerifyReport;

constexpr const char* kNames[] = {"peano", "hol", "ql", "nf", "iset", "set"};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

using Labels = std::set<std::string>;

struct Own {
  double read_s = 0, verify_s = 0;
  VerifyReport report;
};

Result<Own> own(const std::filesystem::path& file) {
  Own out;
  const double begin = cpu_seconds(RUSAGE_SELF);
  FURLONG_TRY(const Database database, Database::read(file));
  const double read = cpu_seconds(RUSAGE_SELF);
  FURLONG_TRY(out.report, verify_database(database));
  out.read_s = read - begin;
  out.verify_s = cpu_seconds(RUSAGE_SELF) - read;
  return out;
}

struct Peer {
  double seconds = 0;
  std::string output;
};

Result<Peer> peer(const std::filesystem::path& file) {
  Peer out;
  const double begin = cpu_seconds(RUSAGE_CHILDREN);
  FURLONG_TRY(furlong::ProcessEnd end,
              furlong::system_processes().run(
                  {.argv = {"metamath", "set scroll continuous", fmt::format("read \"{}\"", file.string()),
                            "verify proof *", "exit"}},
                  600));
  if (end.exit_code != 0) return fail(Code::internal, "metamath: {}", end.text());
  out.seconds = cpu_seconds(RUSAGE_CHILDREN) - begin;
  out.output = std::move(end.standard_output);
  return out;
}

/// The theorems that the program complains about: in errors, and in the list of those that are not proved.
Labels complaints(const std::string& output) {
  Labels out;
  const std::string_view text = output;
  constexpr std::string_view error = ", label \"", list = "were not proved:";
  for (std::size_t at = text.find(error); at != std::string_view::npos; at = text.find(error, at + 1)) {
    const std::size_t begin = at + error.size();
    out.emplace(text.substr(begin, text.find('"', begin) - begin));
  }
  if (const std::size_t at = text.find(list); at != std::string_view::npos) {
    const std::size_t end = std::min(text.find("MM>", at), text.size());
    std::string names =
        furlong::replace_all(text.substr(at + list.size(), end - at - list.size()), "\n", " ");
    for (const std::string& name : furlong::split(furlong::replace_all(names, ",", " "), ' '))
      if (!furlong::trim(name).empty()) out.emplace(furlong::trim(name));
  }
  return out;
}

/// Each fault makes its theorem's proof wrong for certain. The text is that of one file.
struct Planted {
  std::string text;
  Labels theorems;
};

Result<Planted> plant(const std::string& text, std::size_t faults) {
  FURLONG_TRY(const Database database, Database::parse(text, "planted"));
  std::vector<const Assertion*> theorems;
  for (const Assertion& assertion : database.assertions())
    if (assertion.theorem && assertion.proof.find('(') != std::string_view::npos &&
        assertion.proof.find('?') == std::string_view::npos)
      theorems.push_back(&assertion);
  furlong::Random random(1, "planted faults");
  random.shuffle(std::span(theorems));
  theorems.resize(std::min(theorems.size(), faults));
  std::ranges::sort(theorems, {}, [](const Assertion* one) { return one->place.offset; });

  const std::string last(database.assertions().back().label);
  Planted out;
  std::size_t copied = 0, kind = 0;
  // The database has a text of its own: places in it are places in `text`.
  const char* const start =
      database.assertions().front().label.data() - database.assertions().front().place.offset;
  const auto upto = [&](std::size_t offset) {
    out.text.append(text, copied, offset - copied);
    copied = offset;
  };
  for (const Assertion* theorem : theorems) {
    if (theorem->label == last) continue;
    const auto begin = static_cast<std::size_t>(theorem->proof.data() - start);
    const std::size_t end = begin + theorem->proof.size();
    const std::size_t list_end = text.find(')', begin);
    std::size_t letter = end;  // behind the last letter
    while (letter > list_end && (text[letter - 1] < 'A' || text[letter - 1] > 'Z')) --letter;
    switch (kind++ % 6) {
      case 0:  // the last step removed, with the letters of its number
        --letter;
        while (letter > list_end && text[letter - 1] >= 'U') --letter;
        upto(letter);
        copied = end;
        out.text += ' ';
        break;
      case 1:  // a label that is not there
        upto(text.find('(', begin) + 1);
        out.text += " no.such.label";
        break;
      case 2:  // a theorem that comes later
        upto(text.find('(', begin) + 1);
        out.text += " " + last;
        break;
      case 3:  // a step more than there may be
        upto(list_end + 1);
        out.text += " A";
        break;
      case 4:  // not finished
        upto(letter);
        out.text += " ?";
        break;
      default:  // a symbol more in what is stated
        upto(text.rfind("$=", begin));
        out.text += database.symbols()[database.expression(theorem->conclusion)[0]].name;
        out.text += ' ';
    }
    out.theorems.emplace(theorem->label);
  }
  upto(text.size());
  return out;
}

Status planted_verdicts(Bench& bench, const std::string& name, const std::filesystem::path& file) {
  FURLONG_TRY(const std::string text, furlong::system_files().read(file));
  FURLONG_TRY(const Planted planted, plant(text, 120));
  FURLONG_TRY(const furlong::TemporaryFolder folder, furlong::TemporaryFolder::make("metamath-verify"));
  const std::filesystem::path changed = folder.path() / "planted.mm";
  FURLONG_CHECK(furlong::system_files().write_atomic(changed, planted.text));
  FURLONG_TRY(const Own ours, own(changed));
  FURLONG_TRY(const Peer theirs, peer(changed));
  Labels named;
  for (const auto& one : ours.report.unproved) named.insert(one.theorem);
  // A changed statement also breaks the proofs that use it.
  bench.must(std::ranges::includes(named, planted.theorems),
             fmt::format("{}: all {} theorems with planted faults are named", name, planted.theorems.size()));
  const Labels known = complaints(theirs.output);
  bench.must(known == named,
             fmt::format("{}: {} theorems named here, {} by metamath", name, named.size(), known.size()));
  bench.row({name,
             {{"planted", static_cast<double>(planted.theorems.size())},
              {"named", static_cast<double>(named.size())},
              {"by metamath", static_cast<double>(known.size())}},
             "Planted faults (a changed statement breaks what uses it, too)"});
  return {};
}

Status measure(Bench& bench, const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(bench.option("databases")) / (name + ".mm");
  const int repeats = bench.smoke() ? 1 : 3;
  Own best;
  double read_s = 1e9, verify_s = 1e9, peer_s = 1e9;
  std::string output;
  for (int i = 0; i < repeats; ++i) {
    FURLONG_TRY(best, own(file));
    read_s = std::min(read_s, best.read_s);
    verify_s = std::min(verify_s, best.verify_s);
    FURLONG_TRY(Peer theirs, peer(file));
    peer_s = std::min(peer_s, theirs.seconds);
    output = std::move(theirs.output);
  }
  const double ratio = peer_s / (read_s + verify_s);
  const auto proofs = static_cast<double>(best.report.proofs);
  bench.must(best.report.unproved.empty(), fmt::format("{}: all {} proofs hold", name, best.report.proofs));
  bench.must(output.find(fmt::format("and {} are $p", best.report.proofs)) != std::string::npos,
             fmt::format("{}: metamath counts {} proofs as well", name, best.report.proofs));
  // It says so where there are any.
  bench.must(complaints(output).empty() &&
                 output.find("All proofs in the database were verified") != std::string::npos,
             name + ": metamath verifies all of them as well");
  if (name == "set" && !bench.smoke()) bench.at_least("set: times faster than metamath", ratio, 1);
  if (name == "set" || name == "iset" || bench.smoke()) {
    bench.metric(name + "_s", read_s + verify_s, Better::lower, {0.15, 0.01});
    bench.metric(name + "_ratio", ratio, Better::higher, {0.2, 0});
  }
  bench.row({name,
             {{"proofs", proofs},
              {"steps", static_cast<double>(best.report.steps)},
              {"read s", read_s},
              {"verify s", verify_s},
              {"metamath s", peer_s},
              {"times faster", peer_s > 0.02 ? ratio : kNone}},
             "Read and verified on one core, processor time"});
  if (best.report.proofs > 0) FURLONG_CHECK(planted_verdicts(bench, name, file));
  return {};
}

Status run(Bench& bench) {
  const bool databases = std::filesystem::exists(bench.option("databases"));
  const auto program = furlong::system_processes().run({.argv = {"metamath", "exit"}}, 60);
  if (!databases || !program) {
    if (!bench.smoke())
      return fail(Code::unavailable, "this takes the packages metamath and metamath-databases ({})",
                  databases ? "no program 'metamath'" : "no " + bench.option("databases"));
    bench.environment("skipped", "the packages metamath and metamath-databases are not installed");
    return {};
  }
  for (const char* name : kNames)
    if (!bench.smoke() || std::string_view(name) == "hol") FURLONG_CHECK(measure(bench, name));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return furlong::bench::bench_main(
      argc, argv, "metamath-verify", run,
      {{"databases", "folder of the .mm files", "/usr/share/metamath/databases"}});
}
