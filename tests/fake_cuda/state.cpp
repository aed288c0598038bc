#include "tests/fake_cuda/state.h"

#include <cstdlib>

#include "tests/fake_cuda/script.h"

namespace furlong::fake {

// None of these is ever destroyed: a card's threads may outlive main().
std::mutex& lists() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::set<ContextTag*>& contexts() {
  static auto* all = new std::set<ContextTag*>;
  return *all;
}

ContextTag*& current() {
  static thread_local ContextTag* context = nullptr;
  return context;
}

StreamTag*& capturing() {
  static thread_local StreamTag* stream = nullptr;
  return stream;
}

Status32 refuse_while_capturing() {
  if (capturing() == nullptr) return kSuccess;
  capturing()->capture_broken = true;
  return kCaptureUnsupported;
}

bool& started() {
  static bool done = false;
  return done;
}

namespace {

std::atomic<Status32> lost_by{kSuccess};

// fail.cuMemAlloc = 2@3: what the script has for this call.
Status32 scripted(const char* symbol) {
  std::string name = symbol;
  for (const char* version : {"_v2", "_v3"}) {
    if (name.ends_with(version)) name.resize(name.size() - 3);
  }
  const auto code = Script::the().happens("fail." + name, "call " + name);
  return code ? static_cast<Status32>(std::strtol(code->c_str(), nullptr, 10)) : kSuccess;
}

}  // namespace

Status32 enter(const char* symbol) {
  const Status32 code = scripted(symbol);
  if (code != kSuccess) return code;
  return started() ? kSuccess : kNotInitialized;
}

Status32 enter(const char* symbol, ContextTag*& context) {
  const Status32 code = scripted(symbol);
  if (!started()) return kNotInitialized;
  if (const Status32 lost = lost_by; lost != kSuccess) return lost;
  context = current();
  if (context == nullptr) return code != kSuccess ? code : kInvalidContext;
  {
    const std::lock_guard lock(lists());
    if (!contexts().contains(context)) return kContextDestroyed;
  }
  if (const Status32 lost = context->sticky; lost != kSuccess) return lost;
  if (code != kSuccess && loses_context(code)) lose(*context, code);
  return code;
}

void keep_for_ever(const void* what) {
  static std::mutex mutex;
  static auto* kept = new std::vector<const void*>;
  const std::lock_guard lock(mutex);
  kept->push_back(what);
}

std::atomic<Status32>& lost_for_good() { return lost_by; }

void mark_lost(ContextTag& context, Status32 code) {
  Status32 none = kSuccess;
  context.sticky.compare_exchange_strong(none, code);
  none = kSuccess;
  lost_by.compare_exchange_strong(none, code);
}

void lose(ContextTag& context, Status32 code) {
  mark_lost(context, code);
  context.changed.notify_all();
}

}  // namespace furlong::fake
