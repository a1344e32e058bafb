#include "engines/rank_library.hpp"

namespace pw {

Result<std::shared_ptr<Communicator>> open_ranks(const std::string& by,
                                                 const EngineOptions& options, RankLost lost) {
  if (rank_library() == nullptr)
    return fail(error_in("ranks", "PW1201", "this build cannot run ranks as processes",
                         "use --ranks N to run N ranks in one process"));
  return rank_library()->open(by, options, std::move(lost));
}

}  // namespace pw
