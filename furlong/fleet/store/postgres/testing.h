#pragma once
// A server of PostgreSQL for tests: made in a temporary folder, on a socket there, and gone with the object.

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "furlong/base/os/file.h"
#include "furlong/base/os/process.h"

namespace furlong::fleet::postgres {

class TestServer {
 public:
  /// `unavailable` when this machine has no PostgreSQL, or no user that may run it; says why.
  /// `durable`: as servers are run, for measuring; tests of nothing but content are quicker without.
  static Result<std::unique_ptr<TestServer>> start(bool durable = false) {
    FURLONG_TRY(TemporaryFolder folder, TemporaryFolder::make("furlong-pg"));
    std::unique_ptr<TestServer> server(new TestServer(std::move(folder)));
    server->fsync_ = durable ? "fsync=on" : "fsync=off";
    FURLONG_CHECK(server->find_programs());
    FURLONG_CHECK(server->choose_user());
    FURLONG_CHECK(server->run({"initdb", "-D", server->data().string(), "-A", "trust", "-U", "postgres", "-E",
                               "UTF8", "--locale=C", "--no-sync"}));
    FURLONG_CHECK(server->start_again());
    return server;
  }
  /// The one of this process, started at its first use.
  static Result<TestServer*> shared() {
    static const Result<std::unique_ptr<TestServer>> server = start();
    if (!server) return Error(server.error());
    return server->get();
  }

  /// After kill().
  Status start_again() {
    std::vector<std::string> command = as_user_;
    for (const std::string& word :
         {(programs_ / "postgres").string(), std::string("-D"), data().string(), std::string("-k"),
          folder_.path().string(), std::string("-h"), std::string(), std::string("-c"), fsync_,
          std::string("-c"), std::string("shared_buffers=32MB")})
      command.push_back(word);
    // Backends of one that was killed take a moment to notice.
    for (int attempt = 0; attempt < 100; ++attempt) {
      FURLONG_TRY(server_, system_processes().start({.argv = command, .guarded = true}));
      for (int wait = 0; wait < 300; ++wait) {
        if (run({"pg_isready", "-q", "-h", folder_.path().string(), "-U", "postgres", "-t", "1"})) return {};
        if (!std::filesystem::exists(data() / "postmaster.pid") && wait > 10) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      server_->kill();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return fail(Code::unavailable, "the server of PostgreSQL did not start");
  }
  /// As kill -9 of the server.
  void kill() { server_->kill(); }

  std::string url(const std::string& database) const {
    return "postgresql://postgres@/" + database + "?host=" + folder_.path().string();
  }
  /// URL of a new database.
  Result<std::string> new_database(const std::string& options = "") {
    const std::string name = "fleet" + std::to_string(++databases_);
    FURLONG_CHECK(sql("postgres", "CREATE DATABASE " + name + " " + options));
    return url(name);
  }
  Status sql(const std::string& database, const std::string& statement) {
    return run({"psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder_.path().string(), "-U", "postgres", "-d",
                database, "-c", statement});
  }

 private:
  std::string fsync_;
  explicit TestServer(TemporaryFolder folder) : folder_(std::move(folder)) {}
  std::filesystem::path data() const { return folder_.path() / "data"; }

  Status find_programs() {
    std::error_code error;
    std::vector<std::filesystem::path> versions;
    for (std::filesystem::directory_iterator entry("/usr/lib/postgresql", error), end; !error && entry != end;
         entry.increment(error))
      if (std::filesystem::exists(entry->path() / "bin/postgres", error))
        versions.push_back(entry->path() / "bin");
    if (versions.empty())
      return fail(Code::unavailable, "no server of PostgreSQL is installed (package postgresql)");
    programs_ = *std::ranges::max_element(versions);
    return {};
  }

  /// The server refuses to run as the superuser.
  Status choose_user() {
    if (::mkdir(data().c_str(), 0700) != 0)
      return fail(Code::unavailable, "{} cannot be made", data().string());
    if (::geteuid() != 0) return {};
    const passwd* const user = ::getpwnam("postgres");
    if (user == nullptr) return fail(Code::unavailable, "there is no user postgres to run a server as");
    if (::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0 ||
        ::chown(data().c_str(), user->pw_uid, user->pw_gid) != 0)
      return fail(Code::unavailable, "{} cannot be given to the user postgres", data().string());
    as_user_ = {"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"};
    return {};
  }

  Status run(std::vector<std::string> words) {
    words.front() = (programs_ / words.front()).string();
    words.insert(words.begin(), as_user_.begin(), as_user_.end());
    FURLONG_TRY(const ProcessEnd end, system_processes().run({.argv = words, .folder = "/"}, 120));
    if (end.signal == 0 && end.exit_code == 0) return {};
    return fail(Code::unavailable, "{}: {}: {}", words[as_user_.size()], end.text(), end.standard_error);
  }

  TemporaryFolder folder_;
  std::filesystem::path programs_;
  std::vector<std::string> as_user_;
  std::unique_ptr<Child> server_;
  int databases_ = 0;
};

}  // namespace furlong::fleet::postgres
