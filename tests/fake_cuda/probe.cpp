// Asks a CUDA driver how it answers, one line an answer. Run against NVIDIA's driver and the made-up one, the
// two transcripts are compared (README.md): that is what the made-up one's rules rest on.
//   probe DRIVER NVRTC

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "furlong/device/cuda/internal/driver_api.h"
#include "furlong/device/cuda/nvrtc.h"

namespace {

using namespace furlong::device;
using namespace furlong::device::cuda;

constexpr const char* kText = R"(
extern "C" __global__ void add(const int* in, int* out, int by) { out[threadIdx.x] = in[threadIdx.x] + by; }
extern "C" __global__ void wild(int* out) { *(volatile int*)(unsigned long long)(0x10) = 1; out[0] = 1; }
extern "C" __global__ void mixed(char a, double b, short c, int* d) { d[0] = a + (int)b + c; }
template <int N> __global__ void times(int* out) { out[threadIdx.x] *= N; }
extern "C" __global__ void counted(int* out) {
  static int launches;
  if (threadIdx.x == 0 && ++launches > 3) *(volatile int*)(unsigned long long)(0x20) = 1;
  out[0] = 7;
}
)";

const Api* api = nullptr;

void say(const char* what, Status32 code) { std::printf("%s: %d\n", what, code); }

struct Module2 {
  ModuleHandle handle = nullptr;
  Function add = nullptr, wild = nullptr, mixed = nullptr, times = nullptr, counted = nullptr;
};

Module2 load(const Cubin& cubin) {
  Module2 module;
  say("load a module", api->load_module(&module.handle, cubin.image.data()));
  say("find add", api->find_function(&module.add, module.handle, cubin.lowered[0].c_str()));
  say("find wild", api->find_function(&module.wild, module.handle, cubin.lowered[1].c_str()));
  say("find mixed", api->find_function(&module.mixed, module.handle, cubin.lowered[2].c_str()));
  say("find times", api->find_function(&module.times, module.handle, cubin.lowered[3].c_str()));
  say("find counted", api->find_function(&module.counted, module.handle, cubin.lowered[4].c_str()));
  return module;
}

Status32 launch(Function function, std::vector<void*> arguments, Stream stream = nullptr, unsigned grid = 1,
                unsigned block = 32, unsigned shared = 0) {
  return api->launch(function, grid, 1, 1, block, 1, 1, shared, stream, arguments.data(), nullptr);
}

void ask_before_context() {
  std::size_t a = 0, b = 0;
  Address address = 0;
  Card card = -1;
  int value = 0;
  say("memory info without a context", api->memory_info(&a, &b));
  say("allocate without a context", api->allocate(&address, 16));
  say("synchronise without a context", api->wait_stream(nullptr));
  say("card 99", api->card(&card, 99));
  say("attribute 9999", api->card_attribute(&value, 9999, 0));
  say("current context to nothing", api->set_context(nullptr));
}

void ask_memory() {
  Address address = 0, other = 0;
  void* pinned = nullptr;
  say("allocate nothing", api->allocate(&address, 0));
  say("allocate 2^62", api->allocate(&address, std::size_t{1} << 62));
  say("allocate 2^64-1", api->allocate(&address, ~std::size_t{0}));
  say("allocate", api->allocate(&address, 4096));
  say("free nothing", api->free(0));
  say("free inside", api->free(address + 512));
  say("fill", api->fill_bytes(address, 1, 4096, nullptr));
  say("fill nothing", api->fill_bytes(address, 1, 0, nullptr));
  say("fill past the end of all memory", api->fill_bytes(address, 1, std::size_t{1} << 50, nullptr));
  std::vector<unsigned char> host(4096);
  say("read", api->copy_to_host(host.data(), address, 4096, nullptr));
  say("read nothing", api->copy_to_host(host.data(), address, 0, nullptr));
  say("write to an unknown address", api->copy_to_card(0x10, host.data(), 16, nullptr));
  say("free", api->free(address));
  say("free again", api->free(address));
  say("pinned nothing", api->allocate_pinned(&pinned, 0, 0));
  say("pinned", api->allocate_pinned(&pinned, 4096, 0));
  say("free pinned", api->free_pinned(pinned));
  say("free what was not pinned", api->free_pinned(host.data()));
  say("allocate", api->allocate(&other, 1));
  std::printf("aligned to 512: %d\n", other % 512 == 0);
  say("free", api->free(other));
}

void ask_launches(const Module2& module) {
  Address in = 0, out = 0;
  int by = 5;
  (void)api->allocate(&in, 8192);
  (void)api->allocate(&out, 8192);
  (void)api->fill_bytes(in, 0, 8192, nullptr);
  say("launch", launch(module.add, {&in, &out, &by}));
  say("synchronise", api->wait_stream(nullptr));
  int first = 0;
  (void)api->copy_to_host(&first, out, 4, nullptr);
  std::printf("value: %d\n", first);
  say("empty grid", launch(module.add, {&in, &out, &by}, nullptr, 0));
  say("empty block", launch(module.add, {&in, &out, &by}, nullptr, 1, 0));
  say("2000 threads", launch(module.add, {&in, &out, &by}, nullptr, 1, 2000));
  say("grid y of 70000", api->launch(module.add, 1, 70000, 1, 1, 1, 1, 0, nullptr,
                                     std::vector<void*>{&in, &out, &by}.data(), nullptr));
  say("block z of 65", api->launch(module.add, 1, 1, 1, 1, 1, 65, 0, nullptr,
                                   std::vector<void*>{&in, &out, &by}.data(), nullptr));
  say("60000 shared bytes unasked", launch(module.add, {&in, &out, &by}, nullptr, 1, 32, 60000));
  say("ask for 60000", api->set_function_attribute(module.add, kFunctionMaxDynamicShared, 60000));
  say("60000 shared bytes", launch(module.add, {&in, &out, &by}, nullptr, 1, 32, 60000));
  say("ask for 300000", api->set_function_attribute(module.add, kFunctionMaxDynamicShared, 300000));
  say("ask for -1", api->set_function_attribute(module.add, kFunctionMaxDynamicShared, -1));
  say("set the registers", api->set_function_attribute(module.add, kFunctionRegisters, 5));
  say("300000 shared bytes", launch(module.add, {&in, &out, &by}, nullptr, 1, 32, 300000));
  say("no parameters", api->launch(module.add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  say("no function", launch(nullptr, {}));
  for (std::size_t i = 0; api->parameter_info != nullptr && i < 5; ++i) {
    std::size_t offset = 99, bytes = 99;
    const Status32 code = api->parameter_info(module.mixed, i, &offset, &bytes);
    std::printf("parameter %zu: %d at %zu of %zu\n", i, code, code == 0 ? offset : 0, code == 0 ? bytes : 0);
  }
  int value = 0;
  say("attribute 77 of a function", api->function_attribute(&value, 77, module.add));
  Function none = nullptr;
  say("no such function", api->find_function(&none, module.handle, "nobody"));
  ModuleHandle junk = nullptr;
  say("junk for a module", api->load_module(&junk, "this is no machine code at all"));
  say("synchronise", api->wait_stream(nullptr));
  (void)api->free(in);
  (void)api->free(out);
}

void ask_events(const Module2& module) {
  Stream stream = nullptr;
  Event a = nullptr, b = nullptr;
  float ms = -1;
  Address out = 0;
  (void)api->allocate(&out, 4096);
  say("stream", api->create_stream(&stream, kStreamNonBlocking));
  say("event", api->create_event(&a, 0));
  say("event", api->create_event(&b, 0));
  say("wait for an event that was not recorded", api->wait_event(a));
  say("time between events that were not recorded", api->elapsed_ms(&ms, a, b));
  say("record", api->record_event(a, stream));
  say("launch", launch(module.times, {&out}, stream));
  say("record", api->record_event(b, stream));
  say("wait", api->wait_event(b));
  say("elapsed", api->elapsed_ms(&ms, a, b));
  std::printf("not negative: %d\n", ms >= 0);
  if (api->has_graphs()) {
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    Address extra = 0;
    say("capture the null stream", api->begin_capture(nullptr, kCaptureThreadLocal));
    say("end a capture that was not begun", api->end_capture(stream, &graph));
    say("capture", api->begin_capture(stream, kCaptureThreadLocal));
    say("capture twice", api->begin_capture(stream, kCaptureThreadLocal));
    say("launch into it", launch(module.times, {&out}, stream));
    say("record into it", api->record_event(a, stream));
    say("end", api->end_capture(stream, &graph));
    say("wait for an event of a capture", api->wait_event(a));
    say("elapsed of an event of a capture", api->elapsed_ms(&ms, a, b));
    say("instantiate", api->instantiate(&exec, graph, 0));
    say("destroy the graph", api->destroy_graph(graph));
    say("launch it", api->launch_graph(exec, stream));
    say("launch it", api->launch_graph(exec, stream));
    say("synchronise", api->wait_stream(stream));
    say("destroy it", api->destroy_graph_exec(exec));
    say("capture", api->begin_capture(stream, kCaptureThreadLocal));
    say("allocate while capturing", api->allocate(&extra, 64));
    say("free nothing while capturing", api->free(0));
    say("load while capturing", api->load_module(nullptr, nullptr));
    say("synchronise while capturing", api->wait_stream(stream));
    say("launch after that", launch(module.times, {&out}, stream));
    say("end", api->end_capture(stream, &graph));
    std::printf("a graph: %d\n", graph != nullptr);
    say("launch after the capture", launch(module.times, {&out}, stream));
    say("synchronise", api->wait_stream(stream));
  }
  say("destroy the event", api->destroy_event(a));
  say("destroy the event", api->destroy_event(b));
  say("destroy the stream", api->destroy_stream(stream));
  (void)api->free(out);
}

void ask_threads(Context context) {
  std::size_t a = 0, b = 0;
  std::thread([&] {
    say("memory info on another thread", api->memory_info(&a, &b));
    say("current there", api->set_context(context));
    say("memory info on another thread", api->memory_info(&a, &b));
  }).join();
}

void ask_fault(Card card, const Cubin& cubin) {
  for (int turn = 0; turn < 2; ++turn) {
    Context context = nullptr;
    say("new context", api->create_context(&context, kContextBlockingSync, card));
    const Module2 module = load(cubin);
    Address out = 0;
    Stream stream = nullptr;
    Event event = nullptr;
    (void)api->allocate(&out, 4096);
    (void)api->create_stream(&stream, kStreamNonBlocking);
    (void)api->create_event(&event, 0);
    if (turn == 0) {
      say("launch wild", launch(module.wild, {&out}, stream));
    } else {
      for (int i = 0; i < 3; ++i) {
        say("launch counted", launch(module.counted, {&out}, stream));
        say("synchronise", api->wait_stream(stream));
      }
      say("launch counted", launch(module.counted, {&out}, stream));
    }
    say("synchronise", api->wait_stream(stream));
    say("synchronise again", api->wait_stream(stream));
    say("launch after it", launch(module.times, {&out}, stream));
    std::size_t a = 0, b = 0;
    Address more = 0;
    int value = 0;
    say("memory info after it", api->memory_info(&a, &b));
    say("allocate after it", api->allocate(&more, 64));
    say("set context after it", api->set_context(context));
    say("attribute after it", api->card_attribute(&value, kAttributeMajor, card));
    say("record after it", api->record_event(event, stream));
    say("function attribute after it", api->function_attribute(&value, kFunctionRegisters, module.add));
    Context second = nullptr;
    say("another context beside it", api->create_context(&second, 0, card));
    if (second != nullptr) {
      say("allocate in that", api->allocate(&more, 64));
      say("destroy that", api->destroy_context(second));
      say("back", api->set_context(context));
    }
    say("free after it", api->free(out));
    say("destroy the event after it", api->destroy_event(event));
    say("destroy the stream after it", api->destroy_stream(stream));
    say("unload after it", api->unload_module(module.handle));
    say("destroy the context", api->destroy_context(context));
    say("memory info then", api->memory_info(&a, &b));
    say("set the context that is gone", api->set_context(context));
  }
}

void ask_after_destroyed(Card card) {
  Context context = nullptr;
  std::size_t a = 0, b = 0;
  say("new context", api->create_context(&context, 0, card));
  say("destroyed on another thread", [&] {
    Status32 code = 0;
    std::thread([&] { code = api->destroy_context(context); }).join();
    return code;
  }());
  say("memory info here", api->memory_info(&a, &b));
  say("current to nothing", api->set_context(nullptr));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  auto bound = bind_driver(words[1]);
  auto nvrtc = furlong::device::Nvrtc::open(std::filesystem::path(words[2]));
  if (!bound || !nvrtc) {
    std::printf("%s\n", (bound ? nvrtc.error() : bound.error()).text().c_str());
    return 1;
  }
  api = &*bound;
  say("init", api->started);
  say("init with flags", api->init(7));
  ask_before_context();
  CompileRequest request;
  request.language = Language::cuda;
  request.name = "probe";
  request.source = kText;
  request.source_name = "probe.cu";
  request.entries = {"add", "wild", "mixed", "times<3>", "counted"};
  Card card = 0;
  (void)api->card(&card, 0);
  const std::string arch = "sm_" + std::to_string(api->attribute(card, kAttributeMajor)) +
                           std::to_string(api->attribute(card, kAttributeMinor));
  const auto cubin = nvrtc->compile(request, arch);
  const auto other = nvrtc->compile(request, arch == "sm_80" ? "sm_90" : "sm_120");
  if (!cubin || !other) {
    std::printf("%s\n", (cubin ? other.error() : cubin.error()).text().c_str());
    return 1;
  }
  Context context = nullptr;
  say("context with flags of 0x1000", api->create_context(&context, 0x1000, card));
  say("context on card 99", api->create_context(&context, 0, 99));
  say("context", api->create_context(&context, kContextBlockingSync, card));
  ModuleHandle foreign = nullptr;
  say("code for another card", api->load_module(&foreign, other->image.data()));
  const Module2 module = load(*cubin);
  ask_memory();
  ask_launches(module);
  ask_events(module);
  ask_threads(context);
  say("unload", api->unload_module(module.handle));
  say("destroy the context", api->destroy_context(context));
  ask_after_destroyed(card);
  ask_fault(card, *cubin);
  return 0;
}
