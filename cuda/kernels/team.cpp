#include "cuda/kernels/team.hpp"

#include <fmt/format.h>

#include "cuda/kernels/team_size.hpp"

namespace pw::cuda {

std::string Team::first_group(std::int64_t passes) const {
  if (groups == 1 || passes == 1) return place;
  return fmt::format("{0} % {1} + {0} / {1} * {2}", place, kMaxTeam, kMaxTeam * passes);
}

AccessNode Team::shared_loop(AccessNode::Share share, rows::VarId var, std::int64_t lanes) const {
  AccessNode loop;
  loop.share = share;
  loop.var = var;
  loop.lanes = lanes;
  loop.blocks = blocks;
  return loop;
}

}  // namespace pw::cuda
