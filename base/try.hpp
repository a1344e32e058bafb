// PW_TRY: unwraps a Result, or returns its diagnostics from the enclosing function.
#pragma once

#include "base/diagnostic.hpp"

/// `Graph graph = PW_TRY(load(path));` or `PW_TRY(write(path));`. Uses a statement expression, an
/// extension of GCC and Clang. The enclosing function returns a Result of any type.
#define PW_TRY(...) PW_TRY_AS(__COUNTER__, __VA_ARGS__)
#define PW_TRY_AS(number, ...) PW_TRY_NAMED(number, __VA_ARGS__)
#define PW_TRY_NAMED(number, ...)                                \
  ({                                                             \
    auto result_##number = (__VA_ARGS__);                        \
    if (!result_##number) return ::pw::forward(result_##number); \
    std::move(*result_##number);                                 \
  })
