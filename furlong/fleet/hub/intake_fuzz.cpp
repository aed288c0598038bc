// Any body, well signed or not: what is accepted stands in the signed body as a whole line, the reply can be read, and
// without the signature nothing is taken.

#include <cstdlib>

#include "furlong/base/bytes.h"
#include "furlong/base/text.h"
#include "furlong/fleet/hub/internal/testing.h"

using namespace furlong;
using namespace furlong::fleet;

namespace {

void must(bool held) {
  if (!held) std::abort();
}

void check_taken(hub_testing::TestHub& fleet, const std::string& body, const ServerReply& reply) {
  const auto read = parse_batch_reply(reply.body);
  must(read.has_value());
  for (const std::string& id : read->accepted) {
    const auto stored = fleet.store()->race(id);
    must(stored && *stored);
    must((*stored)->batch.body == body);
    const std::string& line = (*stored)->line;
    must(body.find("\n" + line + "\n") != std::string::npos);
    const auto record = record::parse_record(line, "stored");
    must(record && record->id == id);
  }
  must(fleet.store()->totals()->races == read->accepted.size());
  for (const auto& each : read->refused) must(one_line(each.why) == each.why && one_line(each.id) == each.id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(as_text({data, size}));
  const hub_testing::Sender sender(1);
  hub_testing::TestHub fleet;
  fleet.know(sender);

  ServerRequest forged = sender.request(body);
  forged.body += "\n";
  must(fleet.send(forged).status == 403);
  must(fleet.store()->totals()->races == 0);

  const ServerReply reply = fleet.send(sender.request(body));
  must(reply.status == 200 || reply.status == 400 || reply.status == 413 || reply.status == 422);
  if (reply.status == 200)
    check_taken(fleet, body, reply);
  else
    must(fleet.store()->totals()->races == 0 && json_of(reply).contains("error"));

  ServerRequest enrolment = sender.enrolment("t");
  enrolment.body = body;
  enrolment.headers[2].second = sign_body(enrol_media_type, body, sender.key);
  must(fleet.send(enrolment).status != 200);
  return 0;
}
