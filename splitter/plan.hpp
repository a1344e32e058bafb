// The plan: token ranges, capture sizes, padding, and one arena of memory slots. Data only;
// plan.json is its text form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "splitter/dispatch.hpp"
#include "splitter/modes.hpp"
#include "splitter/sizes.hpp"
#include "splitter/splitter.hpp"

namespace pw {

struct Range {  ///< inclusive
  std::int64_t begin = 1, end = 1;
};

/// One value's place in the arena. A value that crosses pieces is alive in whole pieces, so that a
/// captured piece may run its nodes as one kernel; a value inside a piece is alive from its node to
/// its last reader.
struct Slot {
  ValueId value;  ///< of the source graph
  std::string name;
  ValueId storage;  ///< itself, or the value whose place it shares: a view or an in-place result
  bool crossing = false;            ///< read or returned outside the piece that makes it
  std::size_t first = 0, last = 0;  ///< step (piece) indices in which it is alive, inclusive
  std::size_t begin = 0, end = 0;  ///< positions in the node schedule (pieces in order), inclusive;
                                   ///< shared by its storage
  std::int64_t bytes = 0;          ///< at the range's maximum
  std::int64_t offset = 0;
};

/// Memory that a piece needs between its launches, besides what crosses it.
struct Scratch {
  std::string name;                 ///< of the value it holds first
  std::size_t first = 0, last = 0;  ///< launches of the piece in which it is alive, inclusive
  std::int64_t bytes = 0;           ///< at the range's maximum
  std::int64_t offset = 0;
};
/// A piece as a backend runs it: launches in order, each one or several nodes.
struct PieceSchedule {
  std::size_t launches = 1;
  std::vector<Scratch> scratch;
};

struct MemoryPlan {
  std::vector<Slot> slots;  ///< by value order
  /// By piece; of a plan that was made for schedules, whose slots are those that cross pieces.
  std::vector<std::vector<Scratch>> scratch;
  std::int64_t arena_bytes = 0;  ///< aligned to 256
  std::int64_t live_bytes =
      0;  ///< maximum over the schedule of live (aligned) bytes: a lower bound of the arena
  std::int64_t crossing_bytes = 0;                         ///< the same of crossing values only
  std::int64_t workspace_bytes = 0, workspace_offset = 0;  ///< one slot for all library calls
  std::int64_t input_bytes = 0, weight_bytes = 0, buffer_bytes = 0;  ///< outside the arena
  /// Outside of it too: keys and values, and where they are, of a runtime whose attention keeps
  /// them on the device. Of what there is place for before the first step.
  std::int64_t cache_bytes = 0;
};

struct PlanOptions {
  std::int64_t max_tokens = 8192;
  std::vector<std::int64_t> range_ends = {};     ///< from the user
  std::vector<std::int64_t> capture_sizes = {};  ///< empty: defaults
  std::int64_t max_requests = 256;               ///< sequences of a step
  std::int64_t size_cap = 512;                   ///< of the default sizes
  std::string mode = "piecewise";                ///< see CaptureMode; lowered where it must be
  std::int64_t speculative_tokens = 0;           ///< see SizeRules
  std::int64_t sequence_parallel = 1;            ///< see SizeRules
  std::vector<std::int64_t> compile_sizes = {};  ///< compiled for exactly this many tokens
  std::int64_t min_tokens = 1;           ///< fewer are another plan's: where the first range begins
  std::vector<std::int64_t> loras = {};  ///< numbers of adapters to capture for; 0 is always one
  std::int64_t workspace_bytes = 0;      ///< that library calls share, as the backend asks for it
};

struct Plan {
  std::string graph;
  std::string tokens;           ///< name of the token symbol; empty: the graph is static
  std::int64_t max_tokens = 0;  ///< 0: static
  std::map<std::string, std::int64_t> bound;  ///< other dynamic dims, each planned at its maximum
  std::vector<Range> ranges;                  ///< each compiled for, all its sizes in one
  std::vector<std::int64_t> compile_sizes;    ///< ascending; compiled for by themselves
  CaptureSizes capture;
  std::int64_t eager_multiple = 1;      ///< a step without a captured size pads to a multiple of it
  std::vector<std::string> notes;       ///< what was asked for and is not planned, and why
  std::string mode;                     ///< see CaptureMode
  std::string mode_reason;              ///< why it is not the one that was asked for, or empty
  std::int64_t max_requests = 0;        ///< sequences of a step
  std::int64_t speculative_tokens = 0;  ///< a decode has one more a sequence
  std::vector<std::int64_t> loras;      ///< ascending, 0 among them
  std::vector<Capture> captures;        ///< in the order they are recorded
  struct Step {
    PieceId piece;
    PieceClassId piece_class;
    bool captured = false;  ///< as a graph of its own
    std::string reason;     ///< why it is not captured, or empty
  };
  std::vector<Step> steps;
  MemoryPlan memory;
  /// How many times each piece class is compiled.
  [[nodiscard]] std::size_t compilations() const { return ranges.size() + compile_sizes.size(); }
};

/// Inclusive, from `first` to max_tokens, cut after each end; ends outside are left out.
std::vector<Range> make_ranges(std::vector<std::int64_t> ends, std::int64_t max_tokens,
                               std::int64_t first = 1);
/// What the kernels of a step of that many rows, padding included, were compiled for: the size
/// alone, or the range that holds it.
[[nodiscard]] Range compiled_for(const Plan& plan, std::int64_t rows);
/// Slots at the largest size: the tokens symbol at `max_tokens`, any other at its maximum. Literals
/// have no slot. Where a backend groups nodes it gives a schedule for each piece: then values that
/// do not cross a piece have a place only as scratch of its schedule.
Result<MemoryPlan> plan_memory(const StitchedGraph& pieces, const Graph& source,
                               std::int64_t max_tokens, std::vector<PieceSchedule> schedules = {},
                               std::int64_t workspace_bytes = 0);
/// Fills what plan.captures will take, from its sizes and slots.
void predict_captures(const StitchedGraph& pieces, const Graph& source, Plan& plan);
/// Fails without exactly one tokens symbol in a graph that has symbols, for other symbols without a
/// bound, for sizes or range ends outside 1..max_tokens (the smaller of the option and the symbol's
/// own maximum), and where none of the sizes that were asked for can be kept. A graph with an op
/// that mixes rows of tokens is not captured and its steps are not padded: PW0727 where sequence
/// parallelism asks for padding.
Result<Plan> make_plan(const StitchedGraph& pieces, const Graph& source,
                       const PlanOptions& options);
std::string plan_to_json(const Plan& plan, const StitchedGraph& pieces);

}  // namespace pw
