#include "furlong/shard/executor/command/make_store.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "furlong/base/os/file.h"
#include "furlong/base/text.h"
#include "furlong/shard/executor/command/command.h"
#include "furlong/shard/executor/command/compiler.h"
#include "furlong/shard/executor/command/internal/items.h"
#include "furlong/shard/internal/tasks.h"
#include "furlong/shard/pace.h"
#include "furlong/shard/store.h"

namespace furlong::shard::command {
namespace {

namespace fs = std::filesystem;

/// An input file, and how many commands read it.
struct Input {
  Key key;
  Bytes item;
  std::uint64_t bytes = 0;
  unsigned readers = 0;
};

// Of each command with a source. What the compiler does not tell is told in `without`.
Status find_headers(std::vector<Command>& commands, Processes& processes, Pace& pace,
                    const std::stop_token& stop, std::vector<std::string>& without) {
  std::vector<std::size_t> tasks;
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (commands[i].source) tasks.push_back(i);
  if (tasks.empty()) return {};
  const auto workers =
      static_cast<unsigned>(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, tasks.size()));
  std::vector<std::optional<std::string>> failures(commands.size());
  TaskPool<std::size_t> pool(workers, tasks);
  FURLONG_CHECK(run_tasks<std::size_t>(pool, workers, [&](unsigned, std::size_t& index) -> Status {
    Command& command = commands[index];
    if (stop.stop_requested()) return fail(Code::timeout, "stopped while headers were looked for");
    const std::uint64_t running = pace.begin(command.name);
    auto files = find_dependencies(command, processes, stop);
    pace.finish(running);
    pace.advance(1);
    if (files)
      command.inputs = *std::move(files);
    else if (files.error().code() == Code::timeout)
      return files.error();
    else
      failures[index] = fmt::format("{}: {}", command.name, files.error().text());
    return {};
  }));
  for (auto& failure : failures)
    if (failure) without.push_back(*std::move(failure));
  return {};
}

Result<Input> read_input(const std::string& path, const Command& reader) {
  const auto hash = system_files().hash(path, std::numeric_limits<std::size_t>::max());
  std::error_code error;
  InputItem item{path, hash.value_or(Digest()), hash ? fs::file_size(path, error) : 0};
  if (!hash || error)
    return fail(Code::invalid, "{}: an input of '{}' cannot be read: {}", reader.where, one_line(reader.name),
                hash ? path + ": " + error.message() : hash.error().text());
  Input input;
  input.item = encode(item);
  input.key = blake2b_256(input.item);
  input.bytes = item.bytes;
  return input;
}

class Maker {
 public:
  Maker(StoreWriter& writer, StoreSummary& summary, Pace& pace)
      : writer_(writer), summary_(summary), pace_(pace) {}

  Status make(const std::vector<Command>& commands, const std::stop_token& stop) {
    for (const Command& command : commands)
      for (const std::string& path : command.inputs) {
        auto found = inputs_.find(path);
        if (found == inputs_.end()) {
          if (stop.stop_requested()) return fail(Code::timeout, "stopped while inputs were read");
          FURLONG_TRY(Input input, read_input(path, command));
          found = inputs_.emplace(path, std::move(input)).first;
        }
        ++found->second.readers;
      }
    FURLONG_CHECK(shared_inputs());
    for (const Command& command : commands) {
      FURLONG_CHECK(unit_of(command));
      if (!command.source) pace_.advance(1);  // the others were counted when their headers were found
    }
    return {};
  }

 private:
  Result<Key> add(const Bytes& item, bool shared) {
    ++summary_.items;
    summary_.item_bytes += item.size();
    return writer_.add_item(item, shared);
  }

  // In the order of their paths, so that the order of the list is no part of any key.
  Status shared_inputs() {
    std::vector<Key> items;
    for (const auto& [path, input] : inputs_) {
      ++summary_.inputs;
      summary_.input_bytes += input.bytes;
      if (input.readers < 2) continue;
      FURLONG_TRY(const Key key, add(input.item, true));
      items.push_back(key);
    }
    summary_.shared = items.size();
    if (items.empty()) return {};
    ++summary_.units;
    FURLONG_CHECK(writer_.add_unit(std::string(kInputsUnit), std::move(items), {}));
    return {};
  }

  Status unit_of(const Command& command) {
    FURLONG_TRY(const Key key, add(encode(command), false));
    std::vector<Key> items{key}, references;
    for (const std::string& path : command.inputs) {
      const Input& input = inputs_.at(path);
      if (input.readers > 1) {
        references.push_back(input.key);
        continue;
      }
      FURLONG_TRY(const Key own, add(input.item, false));
      items.push_back(own);
    }
    std::sort(references.begin(), references.end());
    ++summary_.units;
    ++summary_.commands;
    FURLONG_CHECK(writer_.add_unit(command.name, std::move(items), std::move(references)));
    return {};
  }

  StoreWriter& writer_;
  StoreSummary& summary_;
  Pace& pace_;
  std::map<std::string, Input> inputs_;
};

}  // namespace

Result<StoreSummary> make_command_store(const fs::path& list, const fs::path& store, const Progress& progress,
                                        std::stop_token stop, Processes& processes) {
  FURLONG_TRY(const std::string text, system_files().read(list));
  std::error_code error;
  const fs::path folder = fs::absolute(list, error).parent_path();
  if (error) return fail(Code::internal, "{}: {}", list.string(), error.message());
  FURLONG_TRY(std::vector<Command> commands, parse_command_list(text, folder, list.string()));
  if (commands.empty()) return fail(Code::invalid, "{}: there is no command in it", list.string());
  StoreSummary summary;
  Pace pace("store", commands.size(), progress);
  FURLONG_CHECK(find_headers(commands, processes, pace, stop, summary.without_headers));
  FURLONG_CHECK(check_independent(commands));
  FURLONG_TRY(StoreWriter writer, StoreWriter::create(store, std::string(kExecutorName), kExecutorVersion,
                                                      fmt::format(R"({{"format":{}}})", kItemFormat)));
  FURLONG_CHECK(Maker(writer, summary, pace).make(commands, stop));
  FURLONG_CHECK(writer.finish());
  pace.end();
  return summary;
}

}  // namespace furlong::shard::command
