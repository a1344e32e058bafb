// One rank's end of a multi-process run: six functions, independent of the transport. Every rank of
// a group calls the same function with equal sizes. Groups are those of RankGroup over all ranks of
// the run.
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
  /// Records which collective this rank enters next, in words, for the report on a lost rank.
  virtual void enter(const std::string& collective) = 0;

  // Arrays are row-major. An array with a part for each rank stores the parts one after another in
  // rank order. The calls fail with PW1290 if a rank is lost or the library fails.
  /// Sums over the group and rounds each element once to `declared`; `sum` has as many elements as
  /// x.
  virtual Status all_reduce(const Array& x, DType declared, const Array& sum, RankGroup group) = 0;
  /// Computes this rank's part of the sum; x holds one part for each rank.
  virtual Status reduce_scatter(const Array& x, DType declared, const Array& part,
                                RankGroup group) = 0;
  virtual Status all_gather(const Array& part, const Array& whole, RankGroup group) = 0;
  /// Sends part i to rank i of the group; part i of y receives what rank i sent.
  virtual Status all_to_all(const Array& x, const Array& y, RankGroup group) = 0;
  /// Copies x from rank `root` of the group to all of its ranks.
  virtual Status broadcast(const Array& x, std::int64_t root, RankGroup group) = 0;
  virtual Status barrier() = 0;
  /// Completes the last call on all ranks; after it each rank may exit.
  virtual Status finish() = 0;
};

/// Communicator that sums on the host: ranks exchange parts, and each adds its own in rank order in
/// double precision and rounds once. The bits equal those of a run with all ranks in one process.
class HostCommunicator : public Communicator {
 public:
  Status all_reduce(const Array& x, DType declared, const Array& sum, RankGroup group) override;
  Status reduce_scatter(const Array& x, DType declared, const Array& part,
                        RankGroup group) override;
};

/// Returns the number of ranks of a group in a run of `all` ranks.
[[nodiscard]] inline std::int64_t ranks_in(RankGroup group, std::int64_t all) {
  return group.size == 0 ? all : group.size;
}
/// Returns the texts of all ranks, by rank.
Result<std::vector<std::string>> gather_texts(Communicator& ranks, const std::string& own);

}  // namespace pw
