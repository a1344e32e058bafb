// One rank's end of a run whose ranks are processes: six functions, whoever carries the bytes.
// Every rank of a group calls the same function with the same sizes; groups are those of RankGroup
// over all ranks of the run.
#pragma once

#include <cstdint>
#include <string>

#include "backends/backend.hpp"
#include "tensor/array.hpp"

namespace pw {

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::int64_t rank() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Which collective this rank comes to next, in words: what is said of a rank that is lost.
  virtual void enter(const std::string& collective) = 0;

  // Arrays are row-major. Of what has a part for each rank of the group the parts lie one after
  // the other, in the order of ranks. PW1290 where a rank is lost or the library fails.
  /// The sum over the group, each element rounded once to `declared`; as many elements as x.
  virtual Status all_reduce(const Array& x, DType declared, const Array& sum, RankGroup group) = 0;
  /// This rank's part of the sum; x has as many as there are ranks.
  virtual Status reduce_scatter(const Array& x, DType declared, const Array& part,
                                RankGroup group) = 0;
  virtual Status all_gather(const Array& part, const Array& whole, RankGroup group) = 0;
  /// Part i goes to rank i of the group; what rank i sent is part i of y.
  virtual Status all_to_all(const Array& x, const Array& y, RankGroup group) = 0;
  /// From rank `root` of the group.
  virtual Status broadcast(const Array& x, std::int64_t root, RankGroup group) = 0;
  virtual Status barrier() = 0;
  /// The last call, on all ranks: from here on each may end.
  virtual Status finish() = 0;
};

/// Sums on the host: parts are exchanged, and each rank adds its own in the order of ranks, in
/// double, and rounds once. These are the bits of a run of all ranks in one process.
class HostCommunicator : public Communicator {
 public:
  Status all_reduce(const Array& x, DType declared, const Array& sum, RankGroup group) override;
  Status reduce_scatter(const Array& x, DType declared, const Array& part,
                        RankGroup group) override;
};

/// How many ranks a group has in a run of so many.
[[nodiscard]] inline std::int64_t ranks_in(RankGroup group, std::int64_t all) {
  return group.size == 0 ? all : group.size;
}
/// Texts of all ranks, by rank.
Result<std::vector<std::string>> gather_texts(Communicator& ranks, const std::string& own);

}  // namespace pw
