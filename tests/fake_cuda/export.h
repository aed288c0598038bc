#pragma once
// A function of the made-up driver: of the very type that the back end's table has for it.

#include <type_traits>

#include "tests/fake_cuda/state.h"

#define FURLONG_FAKE(member, symbol, parameters)                                                  \
  extern "C" Status32 symbol parameters;                                                          \
  static_assert(std::is_same_v<decltype(&symbol), decltype(furlong::device::cuda::Api::member)>); \
  extern "C" Status32 symbol parameters

/// Leaves the function unless it may go on; declares `context`.
#define FURLONG_FAKE_CONTEXT(symbol) \
  ContextTag* context = nullptr;     \
  if (const Status32 refused = enter(symbol, context); refused != kSuccess) return refused
#define FURLONG_FAKE_ENTER(symbol) \
  if (const Status32 refused = enter(symbol); refused != kSuccess) return refused
