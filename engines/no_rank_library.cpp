#include "engines/rank_library.hpp"

namespace pw {

const RankLibrary* rank_library() { return nullptr; }

}  // namespace pw
