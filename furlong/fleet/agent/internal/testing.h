#pragma once
// Fakes that the agent's tests share: a child that plays a script on a fake clock, a hub in memory.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "furlong/base/os/clock.h"
#include "furlong/base/os/process.h"
#include "furlong/fleet/http.h"

namespace furlong::fleet::testing_support {

/// What the test holds of a child: lines to be said, commands that came.
struct ChildScript {
  std::deque<std::string> says;
  std::vector<std::string> heard;
  bool ends = false;  ///< once it has said all
  ProcessEnd end;
  bool killed = false;
};

class FakeChild : public Child {
 public:
  FakeChild(ChildScript& script, FakeClock& clock) : script_(script), clock_(clock) {}
  Result<std::optional<std::string>> read_line(double timeout_s) override {
    if (!script_.says.empty()) {
      std::string line = script_.says.front();
      script_.says.pop_front();
      return std::optional(std::move(line));
    }
    if (script_.ends) return std::optional<std::string>();
    clock_.advance_ns(static_cast<std::int64_t>(timeout_s * 1e9));
    return fail(Code::timeout, "no line");
  }
  Status write(std::string_view bytes) override {
    script_.heard.emplace_back(bytes.substr(0, bytes.size() - 1));
    if (script_.heard.back() == "quit") script_.ends = true;
    return {};
  }
  void close_input() override {}
  ProcessEnd kill() override {
    script_.killed = true;
    return script_.end;
  }
  ProcessEnd wait(double) override { return script_.end; }
  int pid() const override { return 42; }

 private:
  ChildScript& script_;
  FakeClock& clock_;
};

/// Every start gives the next script; with none left, an error.
class FakeProcesses : public Processes {
 public:
  explicit FakeProcesses(FakeClock& clock) : clock_(clock) {}
  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    requests.push_back(request);
    if (started >= scripts.size()) return fail(Code::unavailable, "no such program");
    return std::make_unique<FakeChild>(scripts[started++], clock_);
  }
  std::deque<ChildScript> scripts;
  std::size_t started = 0;
  std::vector<ProcessRequest> requests;

 private:
  FakeClock& clock_;
};

/// A child that has ended.
class EndedChild : public Child {
 public:
  explicit EndedChild(ProcessEnd end) : end_(std::move(end)) {}
  Result<std::optional<std::string>> read_line(double) override { return std::optional<std::string>(); }
  Status write(std::string_view) override { return {}; }
  void close_input() override {}
  ProcessEnd kill() override { return end_; }
  ProcessEnd wait(double) override { return end_; }
  int pid() const override { return 43; }

 private:
  ProcessEnd end_;
};

/// Every child ends at once, with the exit status that `answer` gives.
class AnsweringProcesses : public Processes {
 public:
  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    requests.push_back(request);
    return std::make_unique<EndedChild>(ProcessEnd{.exit_code = answer ? answer(request) : 0});
  }
  std::function<int(const ProcessRequest&)> answer;
  std::vector<ProcessRequest> requests;
};

class FakeHttp : public HttpClient {
 public:
  Result<HttpResponse> send(const HttpRequest& request, const std::stop_token&) override {
    requests.push_back(request);
    return answer ? answer(request) : fail(Code::unavailable, "no hub");
  }
  std::function<Result<HttpResponse>(const HttpRequest&)> answer;
  std::vector<HttpRequest> requests;
};

}  // namespace furlong::fleet::testing_support
