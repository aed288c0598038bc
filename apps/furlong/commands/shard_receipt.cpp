#include "apps/furlong/commands.h"
#include "apps/furlong/session.h"
#include "apps/furlong/shard_session.h"
#include "furlong/base/json.h"
#include "furlong/base/os/interrupt.h"
#include "furlong/base/text.h"
#include "furlong/shard/run.h"

namespace furlong::app {
namespace {

Result<int> run(const Arguments& arguments) {
  FURLONG_TRY(const OpenStore open, open_store(arguments.positionals[0]));
  FURLONG_TRY(const shard::Plan plan, open_plan(arguments.positionals[1]));
  const std::string& file = arguments.positionals[2];
  FURLONG_TRY(const std::string text, as_input(system_files().read(file)));
  FURLONG_TRY(const auto receipt, shard::parse_combined(text, file));
  const shard::ReceiptCache cache(receipts_folder(arguments));
  const std::stop_token stop = stop_on_interrupt();
  const shard::RunContext context{open.store, *open.executor, plan, cache, 1, 1, stop};
  const auto interrupted = [&] {
    print_err("furlong shard receipt: stopped\n");
    return 128 + interrupt_signal();
  };
  const Status gate = shard::check_gate(context);
  if (!gate && stop.stop_requested()) return interrupted();
  FURLONG_CHECK(gate);
  FURLONG_CHECK_DOING(shard::check_combined(receipt, plan, *open.store), "{}", file);
  StepLine line(!arguments.flag("--quiet"));
  shard::ProgressState state{.step = "verify", .total = receipt.leaves.size()};
  std::size_t absent = 0;
  for (const auto& leaf : receipt.leaves) {
    state.heaviest = fmt::format("shard {}", leaf.shard);
    line.show(state);
    std::string why;
    const auto entry = shard::settled(context, *plan.find(leaf.shard), &why);
    if (!entry && stop.stop_requested()) {
      line.clear();
      return interrupted();
    }
    if (!entry) return entry.error();
    if (!*entry && !why.empty()) return fail(Code::mismatch, "{}: shard {}: {}", file, leaf.shard, why);
    if (*entry && (*entry)->receipt != leaf.receipt)
      return fail(Code::mismatch, "{}: shard {}: the cache holds the receipt {}, not {}", file, leaf.shard,
                  (*entry)->receipt.brief(), leaf.receipt.brief());
    if (!*entry) ++absent;
    ++state.done;
  }
  line.clear();
  if (arguments.flag("--json")) {
    print_out(json_pretty(Json{{"schema", 1},
                               {"root", receipt.root.hex()},
                               {"signer", receipt.signer.hex()},
                               {"verified_share", receipt.sample},
                               {"shards", receipt.leaves.size()},
                               {"verified", receipt.leaves.size() - absent},
                               {"absent", absent}}));
  } else {
    print_out(fmt::format(
        "{}: root {} over {} shards holds, signed by {}; {} receipts verified here{}\n", file,
        receipt.root.brief(), receipt.leaves.size(), receipt.signer.id(), receipt.leaves.size() - absent,
        absent == 0 ? "" : fmt::format(", {} are not in {}", absent, cache.folder().string())));
  }
  return absent == 0 ? exit_ok : exit_failed;
}

}  // namespace

CommandSpec shard_receipt_command() {
  return {.name = "shard receipt",
          .summary = "Check a combined receipt against store, plan and the shards' receipts.",
          .description =
              "The root, the signature and every claim are checked against store and plan, and each shard's "
              "receipt in the cache is verified in full. Whose key signed it is for you to compare.\n"
              "Exit 0: all of it holds; 2: bad usage or input; 3: something does not hold, or a shard's "
              "receipt is not in the cache.",
          .positionals = {{.name = "STORE", .help = "A file of furlong shard store."},
                          {.name = "PLAN", .help = "A plan of it (.fsp)."},
                          {.name = "RECEIPT", .help = "What furlong run wrote (PLAN.receipt.json)."}},
          .options = {{.name = "--cache",
                       .value_name = "DIR",
                       .help = "Folder of receipts. Default: receipts/ in the cache folder.",
                       .complete = "folder"},
                      {.name = "--quiet", .value_name = "", .help = "No progress line."},
                      {.name = "--json", .value_name = "", .help = "As JSON."}},
          .examples = {{"furlong shard receipt set.store set.fsp set.receipt.json", ""}},
          .run = run};
}

}  // namespace furlong::app
