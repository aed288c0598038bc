// A request that comes in two pieces is the request that comes in one; the input's first byte says where it
// is cut.

#include <cstdlib>
#include <string>

#include "furlong/base/bytes.h"
#include "furlong/fleet/hub/internal/http/request_reader.h"

using namespace furlong;
using namespace furlong::fleet;

namespace {

struct Read {
  RequestReader::Stage stage = RequestReader::Stage::head;
  std::string method, target, body;
  std::size_t headers = 0, taken = 0;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, std::size_t cut) {
  const auto reader = RequestReader::make(1024);
  Read out;
  reader->set_sink([&](std::string_view piece) {
    out.body += piece;
    return Refusal();
  });
  for (const std::string_view piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
    const std::string own(piece);  // of its own length: a read beyond it is seen
    std::size_t taken = 0;
    while (taken < own.size() && reader->stage() < RequestReader::Stage::complete)
      taken += reader->feed(std::string_view(own).substr(taken));
    out.taken += taken;
  }
  out.stage = reader->stage();
  if (out.stage == RequestReader::Stage::refused)
    return {.stage = out.stage};  // how far it came does not matter
  if (out.stage > RequestReader::Stage::head) {
    out.method = reader->head().method;
    out.target = reader->head().target;
    out.headers = reader->head().headers.size();
    if (out.method.empty() || out.target.empty()) std::abort();
    if (!reader->head().has_body() && !out.body.empty()) std::abort();
    if (out.body.size() > bytes.size()) std::abort();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = as_text({data + 1, size - 1});
  const std::size_t cut = bytes.empty() ? 0 : data[0] * bytes.size() / 256;
  if (read(bytes, 0) != read(bytes, cut)) std::abort();
  return 0;
}
