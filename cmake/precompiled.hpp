// Headers that nearly every source includes, parsed once for all libraries. Sources still include what they use: the build
// without precompiled headers (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON) is the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <tl/expected.hpp>

#include "graph/build.hpp"
#include "graph/text/text.hpp"
