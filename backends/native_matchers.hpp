// The compiler of match programs: this machine's C++ compiler, with the cache of compiled objects,
// so that a program that was compiled before is only loaded.
#pragma once

#include <memory>

#include "backends/cache/cache.hpp"
#include "rewriter/native_matcher.hpp"

namespace pw {

/// Without a cache, that of the environment. Where no compiler is found, what was compiled before
/// is there all the same, and of the rest compile() says PW1222.
[[nodiscard]] std::shared_ptr<MatcherCompiler> make_matcher_compiler(
    std::shared_ptr<CompileCache> cache = {});

}  // namespace pw
