// A piece as a sequence of launches, each with the places of its tensors. One for a class of
// pieces; places are resolved to addresses for each piece and size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/schedules.hpp"

namespace pw::cuda {

/// A tensor of a launch: the piece's n-th input, output, scratch value or literal, the number of
/// valid tokens, which a step writes before its pieces run, or the n-th of those that are 0 between
/// launches.
struct Place {
  enum class Kind : std::uint8_t { input, output, scratch, literal, valid, zero };
  Kind kind = Kind::input;
  std::size_t index = 0;
  TypeId type;
};

struct ProgramLaunch {
  LaunchNode::Kind kind = LaunchNode::Kind::kernel;
  std::string name;
  std::vector<Place> reads, writes;
  std::vector<DimId> params;            ///< of a kernel
  std::shared_ptr<Executable> on_host;  ///< of a library call
  std::optional<ProductCall> product;   ///< of a library call that a driver was asked for
};

struct ScratchValue {
  std::string name;
  TypeId type;
  std::size_t first = 0, last = 0;  ///< launches, inclusive
};

struct PieceProgram {
  std::vector<ProgramLaunch> launches;
  std::vector<ScratchValue> scratch;
  std::vector<Tensor> literals;
  std::vector<TypeId> zeros;       ///< tensors of one launch each, 0 before and after it
  std::vector<Kernel> kernels;     ///< that its launches name
  std::vector<std::string> lacks;  ///< ops that nothing runs on a device: the piece is not captured
  std::vector<std::string>
      notes;  ///< why products are kernels of our own though there is a library
};

struct ProgramOptions {
  rows::GroupingOptions grouping = {};
  /// The sizes at which the driver has to support a matmul for it to become a library call.
  std::vector<Symbols> sizes = {};
  ScheduleChoice schedules = {};
  /// Products that no library takes may be summed in the order of tensor cores.
  bool tensor_cores = false;
};

/// A product is a library call where the driver says so, else a kernel. A call reads what a
/// transposition of its b reads, if that is one of its own. `library` makes what runs library calls
/// on the host.
Result<PieceProgram> make_program(const Graph& piece, Backend& library, const Driver& driver,
                                  const ProgramOptions& options);

}  // namespace pw::cuda
