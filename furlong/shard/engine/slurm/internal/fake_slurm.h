#pragma once
// A made-up Slurm for tests, behind the seam of processes: it keeps a queue, moves it on by one step at each
// squeue, and ends jobs as its script says.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "furlong/base/os/process.h"
#include "furlong/base/text.h"
#include "furlong/shard/engine/slurm/internal/request.h"

namespace furlong::shard::slurm {

class FakeSlurm : public Processes {
 public:
  struct Element {
    std::uint32_t index = 0;
    std::string state = "PENDING";
    std::string fate = "ok";
    int steps = 0;  // it has run
    int exit_code = 0, signal = 0;
    bool forgotten = false;  // Slurm lists it no more
  };
  struct Array {
    std::uint64_t id = 0;
    std::string name, script;
    std::vector<std::string> arguments;  // of sbatch
    unsigned at_once = 0;                // 0: no limit
    std::vector<Element> elements;
    bool rest_cancelled = false;  // listed as one line without an index
  };

  /// How the next jobs of a shard end: "ok", or a state of Slurm and what goes with it: "NODE_FAIL", "FAILED
  /// 3:0", "COMPLETED" (without a receipt), "COMPLETED late" (the receipt comes three looks later),
  /// "forgotten" (out of the queue at once, no receipt), "forgotten ok", "requeued" (runs, is pending again,
  /// then "ok"), "hang". Where none is left: "ok".
  std::map<ShardId, std::deque<std::string>> fates;
  std::set<ShardId> receipts;
  std::vector<Array> arrays;
  std::vector<std::vector<std::string>> asked;  // argv of all calls
  std::uint32_t max_array_size = 1001;
  std::size_t most_at_once = 0;
  bool at_work_twice = false;  // two jobs of one shard and one name were in the queue together
  /// Before anything: an end or Error instead. May return nothing.
  std::function<std::optional<Result<ProcessEnd>>(const ProcessRequest&)> fault;
  /// After an sbatch or squeue has done its work: an end or Error instead of its answer.
  std::function<std::optional<Result<ProcessEnd>>(const ProcessRequest&)> lost_answer;
  std::function<void()> at_look;  // at each squeue

  static ProcessEnd said(int exit_code, std::string out, std::string err = "") {
    ProcessEnd end;
    end.exit_code = exit_code;
    end.standard_output = std::move(out);
    end.standard_error = std::move(err);
    return end;
  }
  static std::optional<std::string> value_of(const std::vector<std::string>& argv, std::string_view option) {
    for (const std::string& argument : argv)
      if (argument.starts_with(option)) return argument.substr(option.size());
    return std::nullopt;
  }
  int calls(std::string_view program) const {
    int count = 0;
    for (const auto& argv : asked) count += argv[0] == program && argv.back() != "--version";
    return count;
  }
  std::size_t live() const {
    std::size_t count = 0;
    for (const Array& array : arrays)
      for (const Element& element : array.elements) count += is_live(element);
    return count;
  }
  /// Puts a job of an earlier run into the queue.
  Array& add_array(const std::string& name, const std::vector<std::uint32_t>& indices, unsigned at_once = 0) {
    Array array;
    array.id = 10 + arrays.size();
    array.name = name;
    array.at_once = at_once;
    const auto plus = name.rfind('+');
    const auto offset = plus == std::string::npos ? 0 : parse_integer(name.substr(plus + 1)).value_or(0);
    for (const std::uint32_t index : indices) {
      Element element;
      element.index = index;
      auto& script = fates[static_cast<ShardId>(offset + index)];
      if (!script.empty()) {
        element.fate = script.front();
        script.pop_front();
      }
      array.elements.push_back(element);
    }
    arrays.push_back(std::move(array));
    return arrays.back();
  }
  static ShardId shard_of(const Array& array, const Element& element) {
    return static_cast<ShardId>(parse_integer(array.name.substr(array.name.rfind('+') + 1)).value_or(0) +
                                element.index);
  }

  Result<std::unique_ptr<Child>> start(const ProcessRequest& request) override {
    asked.push_back(request.argv);
    if (fault)
      if (auto instead = fault(request)) return child(std::move(*instead));
    Result<ProcessEnd> end = answer(request);
    if (lost_answer)
      if (auto instead = lost_answer(request)) end = std::move(*instead);
    return child(std::move(end));
  }

 private:
  class FakeChild : public Child {
   public:
    explicit FakeChild(ProcessEnd end) : end_(std::move(end)) {}
    Result<std::optional<std::string>> read_line(double) override { return std::optional<std::string>(); }
    Status write(std::string_view) override { return {}; }
    void close_input() override {}
    ProcessEnd kill() override { return end_; }
    ProcessEnd wait(double) override { return end_; }
    int pid() const override { return 1; }

   private:
    ProcessEnd end_;
  };
  static Result<std::unique_ptr<Child>> child(Result<ProcessEnd> end) {
    if (!end) return end.error();
    return std::unique_ptr<Child>(std::make_unique<FakeChild>(std::move(*end)));
  }
  static bool is_live(const Element& element) {
    return !element.forgotten && (element.state == "PENDING" || element.state == "RUNNING");
  }

  ProcessEnd answer(const ProcessRequest& request) {
    const auto& argv = request.argv;
    if (argv.back() == "--version") return said(0, "slurm-wlm 22.05.8\n");
    if (argv[0] == "sbatch") return sbatch(request);
    if (argv[0] == "squeue") return squeue();
    if (argv[0] == "scancel") return scancel(argv);
    if (argv[1] == "show")
      return said(0, fmt::format("ClusterName = x\nMaxArraySize            = {}\n", max_array_size));
    if (argv[1] == "--oneliner") return show_job(argv.back());
    if (argv[1] == "update") {
      for (Array& array : arrays)
        if (argv[2] == fmt::format("JobId={}", array.id))
          array.at_once = static_cast<unsigned>(*parse_integer(*value_of(argv, "ArrayTaskThrottle=")));
      return said(0, "");
    }
    return said(1, "", "what?");
  }

  ProcessEnd sbatch(const ProcessRequest& request) {
    const std::string list = *value_of(request.argv, "--array=");
    const auto parts = split(list, '%');
    std::vector<std::uint32_t> indices;
    for (const std::string& range : split(parts[0], ',')) {
      const auto ends = split(range, '-');
      for (auto i = *parse_integer(ends.front()); i <= *parse_integer(ends.back()); ++i)
        indices.push_back(static_cast<std::uint32_t>(i));
    }
    if (indices.back() >= max_array_size)
      return said(1, "", "sbatch: error: Batch job submission failed: Invalid job array specification");
    Array& array = add_array(*value_of(request.argv, "--job-name="), indices,
                             parts.size() == 2 ? static_cast<unsigned>(*parse_integer(parts[1])) : 0);
    array.script = request.input;
    array.arguments = request.argv;
    return said(0, fmt::format("{}\n", array.id));
  }

  ProcessEnd squeue() {
    if (at_look) at_look();
    step();
    std::string text;
    for (const Array& array : arrays) {
      if (array.rest_cancelled)
        text += fmt::format("{}|N/A|CANCELLED|0:00||Resources|{}\n", array.id, array.name);
      for (const Element& element : array.elements)
        if (!element.forgotten)
          text += fmt::format("{}|{}|{}|0:{:02}|{}|None|{}\n", array.id, element.index, element.state,
                              element.steps, element.state == "PENDING" ? "" : "n1", array.name);
    }
    return said(0, text);
  }

  void step() {
    for (Array& array : arrays)
      for (Element& element : array.elements)
        if (element.state == "RUNNING") end(array, element);
    for (auto late = late_.begin(); late != late_.end();) {
      if (--late->second > 0) {
        ++late;
        continue;
      }
      receipts.insert(late->first);
      late = late_.erase(late);
    }
    std::size_t all = 0;
    std::set<std::pair<std::string, ShardId>> seen;
    for (Array& array : arrays) {
      std::size_t running = 0;
      for (const Element& element : array.elements) running += element.state == "RUNNING";
      for (Element& element : array.elements) {
        if (element.state == "PENDING" && (array.at_once == 0 || running < array.at_once)) {
          element.state = "RUNNING";
          ++running;
        }
        if (is_live(element) &&
            !seen.insert({array.name.substr(0, array.name.rfind('+')), shard_of(array, element)}).second)
          at_work_twice = true;
      }
      all += running;
    }
    most_at_once = std::max(most_at_once, all);
  }

  void end(const Array& array, Element& element) {
    ++element.steps;
    if (element.fate == "hang") return;
    const ShardId shard = shard_of(array, element);
    const auto parts = split(element.fate, ' ');
    if (element.fate == "requeued") {
      element.state = "PENDING";
      element.fate = "ok";
      return;
    }
    if (element.fate == "ok" || element.fate == "forgotten ok") receipts.insert(shard);
    if (element.fate == "COMPLETED late") late_[shard] = 3;
    element.forgotten = parts[0] == "forgotten";
    element.state = parts[0] == "ok" || parts[0] == "forgotten" ? "COMPLETED" : parts[0];
    if (parts[0] == "FAILED") {
      const auto code = split(parts[1], ':');
      element.exit_code = static_cast<int>(*parse_integer(code[0]));
      element.signal = static_cast<int>(*parse_integer(code[1]));
    }
  }

  ProcessEnd show_job(const std::string& job) {
    for (const Array& array : arrays)
      for (const Element& element : array.elements)
        if (!element.forgotten && job == fmt::format("{}_{}", array.id, element.index))
          return said(
              0,
              fmt::format("JobId=99 ArrayJobId={} ArrayTaskId={} JobState={} ExitCode={}:{} NodeList=n1 \n",
                          array.id, element.index, element.state, element.exit_code, element.signal));
    return said(1, "", "slurm_load_jobs error: Invalid job id specified");
  }

  ProcessEnd scancel(const std::vector<std::string>& argv) {
    const bool pending_alone = value_of(argv, "--state=PENDING").has_value();
    for (Array& array : arrays)
      for (Element& element : array.elements)
        for (const std::string& job : argv)
          if (job == std::to_string(array.id) || job == fmt::format("{}_{}", array.id, element.index))
            if (element.state == "PENDING" || (element.state == "RUNNING" && !pending_alone))
              element.state = "CANCELLED";
    return said(0, "");
  }

  std::map<ShardId, int> late_;
};

}  // namespace furlong::shard::slurm
