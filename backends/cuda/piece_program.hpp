// What runs a piece on a device: launches in order, each with the places of its tensors. One for a
// class of pieces; places are filled in with addresses for each piece and size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "backends/rowprogram/grouping.hpp"

namespace pw::cuda {

/// A tensor of a launch: the piece's n-th input, output, scratch value or literal.
struct Place {
  enum class Kind : std::uint8_t { input, output, scratch, literal };
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
  std::vector<Kernel> kernels;     ///< that its launches name
  std::vector<std::string> lacks;  ///< ops that nothing runs on a device: the piece is not captured
};

struct ProgramOptions {
  rows::GroupingOptions grouping = {};
  bool product_kernels = false;  ///< matrix products are kernels where they can be, and no calls
};

/// `library` makes what runs library calls on the host.
Result<PieceProgram> make_program(const Graph& piece, Backend& library,
                                  const ProgramOptions& options);

}  // namespace pw::cuda
