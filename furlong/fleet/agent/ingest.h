#pragma once
// Takes the race records that a worker appended to its file into the spool, each once.

#include <filesystem>
#include <string>
#include <vector>

#include "furlong/base/error.h"
#include "furlong/base/os/file.h"

namespace furlong {
class Clock;
class Random;
}  // namespace furlong

namespace furlong::fleet {

class Spool;

/// What a worker's record lacks.
struct RecordOrigin {
  std::string machine;
  std::string slot;
  std::string agent;  ///< version
};

struct Ingested {
  int records = 0;    ///< new ones
  int skipped = 0;    ///< lines that are no record
  bool full = false;  ///< the spool has no room: the rest stays in the file until it has
  std::vector<std::string> notes;
};

/// Reads what was added to `file` since the last time. The spool's mark and the records are one transaction,
/// so that wherever the process is killed nothing is lost and nothing comes twice. A last line that is torn
/// is left until it is whole, or a later line shows that it stays torn (then it is skipped and noted). A file
/// that is shorter than the mark, or has other bytes before it, is read from its beginning; lines that were
/// taken in before are known. No file is no error. Errors of the file and the spool: nothing was taken, call
/// again.
Result<Ingested> ingest(Files& files, Spool& spool, const std::filesystem::path& file,
                        const RecordOrigin& origin, Clock& clock, Random& random);

/// What waits in the spool from before this machine's key was replaced names the new key from now on: the hub
/// takes no record of another machine.
Status adopt_records(Spool& spool, const std::string& machine);

/// Whether all of the file is in the spool.
Result<bool> is_ingested(Files& files, Spool& spool, const std::filesystem::path& file);

}  // namespace furlong::fleet
