#include "furlong/worker/back_line.h"

#include "furlong/base/json.h"

namespace furlong::worker {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

Json pair_json(const record::Pair& pair) { return Json::array({pair.epoch, pair.day}); }

Json job_json(std::string_view what, const record::JobCommand& job) {
  return Json::array({std::string(what), record::print(job)});
}

}  // namespace

// JSON after the '@': names may hold anything.
std::string print(const BackLine& line) {
  const Json json = std::visit(
      Overloaded{
          [](const BeginLine& l) { return job_json("begin", l.job); },
          [](const RefusedLine& l) { return job_json("refused", l.job); },
          [](const AtLine& l) { return Json::array({"at", l.done, l.checked, l.hashes}); },
          [](const TakeLine& l) {
            return Json::array({"take", pair_json(l.pair), l.kind, l.limit_s, l.name});
          },
          [](const DropLine&) { return Json::array({"drop"}); },
          [](const PreparesLine& l) { return Json::array({"prepares", l.prepares}); },
          [](const EndedLine& l) { return Json::array({"ended", pair_json(l.pair)}); },
          [](const FallenLine& l) { return Json::array({"fallen", pair_json(l.pair), l.variant, l.why}); }},
      line);
  // Bytes that are no UTF-8 (a compiler's words) must not end the process.
  return "@" + json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_back_line(std::string_view line) { return line.starts_with('@'); }

Result<BackLine> parse_back_line(std::string_view line) {
  if (!is_back_line(line)) return fail(Code::invalid, "no line between a worker's processes");
  FURLONG_TRY(const Json json, json_parse(line.substr(1), "a line between a worker's processes"));
  const auto wrong = [&] {
    return fail(Code::invalid, "a line between a worker's processes: '{}'", line.substr(0, 80));
  };
  if (!json.is_array() || json.empty() || !json[0].is_string()) return wrong();
  const auto is_pair = [](const Json& value) {
    return value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_number_integer();
  };
  const auto pair_of = [](const Json& value) {
    return record::Pair{value[0].get<std::string>(), value[1].get<std::int64_t>()};
  };
  const std::string what = json[0].get<std::string>();
  const std::size_t size = json.size();
  if ((what == "begin" || what == "refused") && size == 2 && json[1].is_string()) {
    FURLONG_TRY(const record::WorkerCommand command,
                record::parse_worker_command(json[1].get<std::string>()));
    const auto* job = std::get_if<record::JobCommand>(&command);
    if (job == nullptr) return wrong();
    return what == "begin" ? BackLine(BeginLine{*job}) : BackLine(RefusedLine{*job});
  }
  if (what == "at" && size == 4 && json[1].is_number_unsigned() && json[2].is_number_unsigned() &&
      json[3].is_number_unsigned())
    return AtLine{json[1].get<std::uint64_t>(), json[2].get<std::uint64_t>(), json[3].get<std::uint64_t>()};
  if (what == "take" && size == 5 && is_pair(json[1]) && json[2].is_number_unsigned() &&
      json[3].is_number() && json[4].is_string())
    return TakeLine{pair_of(json[1]), json[2].get<std::uint32_t>(), json[3].get<double>(),
                    json[4].get<std::string>()};
  if (what == "drop" && size == 1) return DropLine{};
  if (what == "prepares" && size == 2 && json[1].is_number_unsigned())
    return PreparesLine{json[1].get<std::uint64_t>()};
  if (what == "ended" && size == 2 && is_pair(json[1])) return EndedLine{pair_of(json[1])};
  if (what == "fallen" && size == 4 && is_pair(json[1]) && json[2].is_string() && json[3].is_string())
    return FallenLine{pair_of(json[1]), json[2].get<std::string>(), json[3].get<std::string>()};
  return wrong();
}

}  // namespace furlong::worker
