// A piece as a sequence of launches with the places of their tensors. There is one program for a
// class of pieces; places are resolved to addresses for each piece and size.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/schedules.hpp"

namespace pw::cuda {

/// Place of a launch's tensor: the piece's n-th input, output, scratch value or literal; the number
/// of valid tokens, which a step writes before its pieces run; the n-th tensor that is 0 between
/// launches; or of the attention in the next piece: the places of rows in its pages, and its pages
/// of keys and of values.
struct Place {
  enum class Kind : std::uint8_t {
    input,
    output,
    scratch,
    literal,
    valid,
    zero,
    slots,
    keys,
    values
  };
  Kind kind = Kind::input;
  std::size_t index = 0;
  TypeId type;
};

struct ProgramLaunch {
  LaunchNode::Kind kind = LaunchNode::Kind::kernel;
  std::string name;
  std::vector<Place> reads, writes;
  std::vector<DimId> params;            ///< for a kernel
  std::shared_ptr<Executable> on_host;  ///< for a library call
  std::optional<ProductCall> product;   ///< for a library call that the driver supports
};

/// Returns a launch for the sizes of a run, without addresses and workspace. Fails with PW1202 at
/// `place` if a dim has no value.
Result<LaunchNode> launch_node(const ProgramLaunch& launch, const Context& context,
                               const RunContext& run, const std::string& place);

struct ScratchValue {
  std::string name;
  TypeId type;
  std::size_t first = 0, last = 0;  ///< launches, inclusive
  bool of_few = false;              ///< launches of `PieceProgram::few`
};

struct PieceProgram {
  std::vector<ProgramLaunch> launches;
  /// Launches for at most kFewRows tokens, with the same places; empty: the others.
  std::vector<ProgramLaunch> few;
  std::vector<ScratchValue> scratch;
  std::vector<Tensor> literals;
  std::vector<TypeId> zeros;       ///< tensors of one launch each, 0 before and after it
  std::vector<Kernel> kernels;     ///< kernels that its launches name
  std::vector<std::string> lacks;  ///< ops that no device code runs: the piece is not captured
  std::vector<std::string> notes;  ///< why products are our own kernels although there is a library
  std::size_t streamed = 0;        ///< launches of streamed_product.hpp
  bool fills_pages = false;        ///< one of `few` puts the next piece's keys and values there

  [[nodiscard]] const std::vector<ProgramLaunch>& launches_for(std::int64_t tokens) const;
  /// Returns true if those launches put the next piece's keys and values into pages.
  [[nodiscard]] bool fills_pages_for(std::int64_t tokens) const;
  /// Takes the launches of another program of the piece for few tokens.
  void add_few(PieceProgram other);
};

/// Outputs of a piece that attention, which is the next piece, puts into pages.
struct CachedOutputs {
  std::size_t k = 0, v = 0;
  std::int64_t width = 0;  ///< elements of a row
  friend bool operator==(const CachedOutputs&, const CachedOutputs&) = default;
};

struct ProgramOptions {
  rows::GroupingOptions grouping = {};
  /// Sizes at which the driver must support a matmul for it to be a library call.
  std::vector<Symbols> sizes = {};
  ScheduleChoice schedules = {};
  /// Products that no library runs may sum in the order of tensor cores.
  bool tensor_cores = false;
  /// Products stream their weights and join their neighbours: see joined_products.hpp.
  bool stream_weights = false;
  /// Outputs that such a product may put into pages.
  std::optional<CachedOutputs> cached = std::nullopt;
};

/// Makes the program of a piece. A product is a library call if the driver supports it, else a
/// kernel. A call reads the operand of b's transposition directly, if that has no other reader.
/// `library` runs library calls on the host.
Result<PieceProgram> make_program(const Graph& piece, Backend& library, const Driver& driver,
                                  const ProgramOptions& options);

}  // namespace pw::cuda
