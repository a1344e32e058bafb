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

/// One value's place in the arena. A value that crosses pieces is alive for whole pieces, so that a
/// captured piece may run its nodes as one kernel. A value inside a piece is alive from its node to
/// its last reader.
struct Slot {
  ValueId value;  ///< value of the source graph
  std::string name;
  ValueId storage;        ///< itself, or the value that it aliases: a view or an in-place result
  bool crossing = false;  ///< read or returned outside the piece that makes it
  std::size_t first = 0, last = 0;  ///< step (piece) indices in which it is alive, inclusive
  std::size_t begin = 0, end = 0;  ///< positions in the node schedule (pieces in order), inclusive;
                                   ///< shared by its storage
  std::int64_t bytes = 0;          ///< at the range's maximum
  std::int64_t offset = 0;
};

/// Memory that a piece needs between its launches, in addition to crossing values.
struct Scratch {
  std::string name;                 ///< name of its first value
  std::size_t first = 0, last = 0;  ///< launches of the piece in which it is alive, inclusive
  std::int64_t bytes = 0;           ///< at the range's maximum
  std::int64_t offset = 0;
};
/// A piece as a backend runs it: launches in order, each of one or several nodes.
struct PieceSchedule {
  std::size_t launches = 1;
  std::vector<Scratch> scratch;
};

struct MemoryPlan {
  std::vector<Slot> slots;  ///< by value order
  /// Scratch by piece, for a plan made from schedules; its slots are the crossing values.
  std::vector<std::vector<Scratch>> scratch;
  std::int64_t arena_bytes = 0;  ///< aligned to 256
  std::int64_t live_bytes =
      0;  ///< maximum over the schedule of live (aligned) bytes: a lower bound of the arena
  std::int64_t crossing_bytes = 0;                         ///< the same for crossing values only
  std::int64_t workspace_bytes = 0, workspace_offset = 0;  ///< one slot for all library calls
  std::int64_t input_bytes = 0, weight_bytes = 0, buffer_bytes = 0;  ///< outside the arena
  /// Bytes of keys and values, also outside the arena, for a runtime whose attention keeps them on
  /// the device: the initial capacity.
  std::int64_t cache_bytes = 0;
};

struct PlanOptions {
  std::int64_t max_tokens = 8192;
  std::vector<std::int64_t> range_ends = {};     ///< from the user
  std::vector<std::int64_t> capture_sizes = {};  ///< empty: defaults
  std::int64_t max_requests = 256;               ///< sequences of a step
  std::int64_t size_cap = 512;                   ///< maximum of the default sizes
  std::string mode = "piecewise";                ///< see CaptureMode; lowered where it must be
  std::int64_t speculative_tokens = 0;           ///< see SizeRules
  std::int64_t sequence_parallel = 1;            ///< see SizeRules
  std::vector<std::int64_t> compile_sizes = {};  ///< compiled for exactly this many tokens
  /// First token count of the first range; a smaller step belongs to another plan.
  std::int64_t min_tokens = 1;
  std::vector<std::int64_t> loras = {};  ///< adapter counts to capture for; 0 is always included
  std::int64_t workspace_bytes = 0;      ///< shared by library calls; the backend states the size
};

struct Plan {
  std::string graph;
  std::string tokens;           ///< name of the token symbol; empty: the graph is static
  std::int64_t max_tokens = 0;  ///< 0: static
  std::map<std::string, std::int64_t> bound;  ///< other dynamic dims, each planned at its maximum
  std::vector<Range> ranges;  ///< compiled ranges; one compilation serves all sizes of a range
  std::vector<std::int64_t> compile_sizes;  ///< ascending; each has its own compilation
  CaptureSizes capture;
  std::int64_t eager_multiple = 1;  ///< a step without a captured size pads to a multiple of this
  std::vector<std::string> notes;   ///< requested properties that are not planned, with reasons
  std::string mode;                 ///< see CaptureMode
  std::string mode_reason;          ///< why it differs from the requested mode, or empty
  std::int64_t max_requests = 0;    ///< sequences of a step
  std::int64_t speculative_tokens = 0;  ///< a decode has 1 + this many tokens a sequence
  std::vector<std::int64_t> loras;      ///< ascending, including 0
  std::vector<Capture> captures;        ///< in recording order
  struct Step {
    PieceId piece;
    PieceClassId piece_class;
    bool captured = false;  ///< in a graph of its own
    std::string reason;     ///< why it is not captured, or empty
  };
  std::vector<Step> steps;
  MemoryPlan memory;
  /// Returns the number of compilations of each piece class.
  [[nodiscard]] std::size_t compilations() const { return ranges.size() + compile_sizes.size(); }
};

/// Returns inclusive ranges from `first` to max_tokens, cut after each end; ends outside are
/// ignored.
std::vector<Range> make_ranges(std::vector<std::int64_t> ends, std::int64_t max_tokens,
                               std::int64_t first = 1);
/// Returns what the kernels of a step with this many rows (padding included) were compiled for: the
/// exact size, or the range that holds it.
[[nodiscard]] Range compiled_for(const Plan& plan, std::int64_t rows);
/// Returns slots at the largest size: the tokens symbol at `max_tokens`, other symbols at their
/// maximum. Literals have no slot. If a backend groups nodes it gives a schedule for each piece;
/// values inside a piece then have a place only as scratch of the schedule.
Result<MemoryPlan> plan_memory(const StitchedGraph& pieces, const Graph& source,
                               std::int64_t max_tokens, std::vector<PieceSchedule> schedules = {},
                               std::int64_t workspace_bytes = 0);
/// Fills the predicted resources of plan.captures from its sizes and slots.
void predict_captures(const StitchedGraph& pieces, const Graph& source, Plan& plan);
/// Makes a plan. Fails if a graph with symbols does not have exactly one tokens symbol, if another
/// symbol has no bound, if sizes or range ends are outside 1..max_tokens (the smaller of the option
/// and the symbol's maximum), or if none of the requested sizes can be kept. A graph with a
/// cross-token op is neither captured nor padded; it fails with PW0727 if sequence parallelism
/// requires padding.
Result<Plan> make_plan(const StitchedGraph& pieces, const Graph& source,
                       const PlanOptions& options);
std::string plan_to_json(const Plan& plan, const StitchedGraph& pieces);

}  // namespace pw
