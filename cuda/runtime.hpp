// Runs steps through a plan on a device. Captured pieces, or whole steps, are recorded once for
// each size and replayed; ops between pieces are launched directly. All memory is allocated and
// everything recorded before the first step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/kernels/attention/attention.hpp"
#include "cuda/piece_program.hpp"
#include "exec/runner.hpp"

namespace pw::cuda {

struct RuntimeOptions {
  bool strict = false;  ///< library calls and ops between graphs match the interpreter's bits
  rows::GroupingOptions grouping;
  /// Initial capacity of the device's key-value cache, in tokens of all sequences; 0: the maximum
  /// tokens of a step. The cache grows on demand, which makes captured whole steps stale.
  std::int64_t cached_tokens = 0;
  /// Schedules tuned for the driver's architecture; null: default schedules.
  const ScheduleTable* schedules = nullptr;
};

/// Counts since the runtime was created. A class is recorded once for each size; each of its pieces
/// has its own executable with its own addresses.
struct RuntimeCounters {
  std::size_t pieces = 0, capturable_pieces = 0, piece_classes = 0;
  std::size_t compilations = 0;     ///< of classes
  std::size_t graphs_captured = 0;  ///< class and size, plus whole steps by size
  std::size_t whole_steps = 0;      ///< part of graphs_captured
  std::size_t executables = 0;      ///< piece and size, plus whole steps by size
  std::size_t graph_nodes = 0;      ///< total of the executables
  std::size_t failed_captures = 0;  ///< graphs that run launch by launch instead
  std::size_t allocations = 0;
  std::size_t replays = 0, launches = 0, ops_between = 0;
  std::size_t stale = 0;  ///< skipped replays because an address had changed
};

class Runtime {
 public:
  /// Compiles and allocates everything except the contents of inputs. Fails with PW1250 and a table
  /// of the requested memory if memory is short. A plan with scratch places comes from an earlier
  /// runtime: its places are reused, or rejected with PW1256 if they do not suit the graph or its
  /// launches. The stitched graph, its source, the plan and the driver must outlive the runtime.
  static Result<std::unique_ptr<Runtime>> make(const StitchedGraph& stitched, const Graph& source,
                                               const Plan& plan, Driver& driver,
                                               const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Copies weights and buffers to the device, each to its own memory. A second call uses other
  /// memory and makes earlier captures stale.
  Status load(Weights& weights);
  /// Captures every captured piece at every size of the plan, then whole steps, largest first. Call
  /// it once, after load(); fails with PW1255 after the first step.
  Status capture();
  Result<StepResult> run(const Step& step, Weights& weights, const RunOptions& options = {});

  // ---- a step by hand: begin, every piece in the plan's order, then the outputs. Any other order
  // fails with PW1254.
  Result<StepReport> begin_step(const Step& step, Weights& weights, const RunOptions& options = {});
  Status run_piece(PieceId piece);
  Result<std::vector<Tensor>> end_step();

  /// Returns the memory plan; a runtime made with it gets the same addresses.
  [[nodiscard]] const MemoryPlan& memory() const { return memory_; }
  [[nodiscard]] const RuntimeCounters& counters() const { return counters_; }
  /// Returns why pieces are not captured, and other deviations from the plan, each once.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Returns the kernels of its launches, each once.
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  /// Returns the recorded graph of a piece at a size.
  Result<RecordedGraph> record(PieceId piece, std::int64_t tokens) const;
  /// Returns the recorded graph of a whole step with `query` new tokens of each sequence; 0: they
  /// may differ.
  Result<RecordedGraph> record_step(std::int64_t tokens, std::int64_t query = 0) const;
  /// Times of capture() for each size, in recording order.
  struct CaptureTime {
    std::int64_t tokens = 0;
    double seconds = 0;
  };
  [[nodiscard]] const std::vector<CaptureTime>& capture_times() const { return capture_times_; }

 private:
  struct Class {
    PieceProgram program;
    bool captured = false;
    std::optional<AttentionKernels> attention;  ///< kernels for uncaptured launches
    std::vector<Address> literals;
  };
  struct Captured {
    std::unique_ptr<GraphExecutable> executable;
    std::uint64_t addresses = 0;  ///< hash
    LaunchCounts launches = {};
  };
  /// Consecutive steps of a plan in one graph: all of them, unless an op on the host interrupts the
  /// step.
  struct Segment {
    std::size_t first = 0, end = 0;
    Captured graph;
  };
  /// The current step.
  struct Live {
    Step step;
    StepReport report;
    RunOptions options;
    std::int64_t query = 0;  ///< new tokens of each sequence; 0: they differ
    std::size_t next = 0;    ///< index in the plan's steps
  };

  Runtime(const StitchedGraph& stitched, const Graph& source, const Plan& plan, Driver& driver,
          const RuntimeOptions& options);
  [[nodiscard]] bool captures_steps() const;
  /// Returns the initial number of key-value pages in each layer.
  [[nodiscard]] std::int64_t first_pages() const;
  [[nodiscard]] std::int64_t attention_rows(std::int64_t tokens) const;
  [[nodiscard]] std::int64_t most_rows() const {
    return attention_rows(round_up(plan_.max_tokens, plan_.eager_multiple));
  }
  Status compile();
  [[nodiscard]] std::vector<Symbols> asked_sizes() const;
  [[nodiscard]] std::int64_t workspace_bytes() const;
  Status compile(const PieceClass& piece_class);
  void keep(const Kernel& kernel);
  [[nodiscard]] ScheduleChoice schedules() const;
  Status plan_all_memory();
  Status take_memory(const std::vector<PieceSchedule>& needed);
  [[nodiscard]] Status check_workspace() const;
  Status allocate_all();
  Status allocate_zeros();
  Result<Address> allocate(std::int64_t bytes, const std::string& what);
  [[nodiscard]] std::string memory_table() const;

  [[nodiscard]] Result<std::int64_t> largest_bytes(ValueId value) const;
  /// Returns true if an input stays on the device between steps: a weight or buffer of fixed size.
  [[nodiscard]] bool stays(ValueId input) const;
  [[nodiscard]] const Class& class_of(PieceId piece) const {
    return classes_[stitched_.pieces[piece].piece_class.index];
  }
  [[nodiscard]] bool captured(PieceId piece) const;
  [[nodiscard]] std::uint64_t address_hash(PieceId piece) const;
  [[nodiscard]] std::uint64_t hash_of(const Segment& segment) const;
  Result<DeviceTensor> tensor(ValueId value, const Symbols& symbols) const;
  Result<std::vector<DeviceTensor>> tensors(const std::vector<ValueId>& values,
                                            const Symbols& symbols) const;
  Result<DeviceTensor> tensor(PieceId piece, const Place& place, const Symbols& symbols) const;
  /// Returns the launches of a piece at a size, in order, without edges.
  Result<std::vector<LaunchNode>> nodes_of(PieceId piece, std::int64_t tokens) const;
  Result<StepReport> dispatch(const Step& step, const RunOptions& options) const;
  /// Returns the key of a step's graphs; 0 if sizes do not depend on tokens.
  [[nodiscard]] std::int64_t captured_size(const StepReport& report) const {
    return plan_.tokens.empty() ? 0 : report.padded;
  }
  Status bind_input(ValueId input, const Tensor& tensor);
  Status check_due(PieceId piece) const;
  Status run_due_piece(PieceId piece);
  class Call;  ///< view for a hook
  Status tell(PieceId piece, bool after);
  /// Returns the launches of an attention piece.
  Result<std::vector<LaunchNode>> attention_of(PieceId piece, std::int64_t tokens,
                                               std::int64_t query) const;
  /// Instantiates a graph; the result has no executable if the driver rejects it, which adds a
  /// note.
  Captured instantiate(RecordedGraph graph, std::uint64_t addresses);
  Status capture_pieces(std::int64_t size);
  Status capture_step(std::int64_t size, std::int64_t query);
  [[nodiscard]] bool on_host(std::size_t step) const {
    return between_[plan_.steps[step].piece.index] != nullptr;
  }
  /// Returns the runs of pieces between those on the host, with nothing recorded.
  [[nodiscard]] std::vector<Segment> segments() const;
  /// Returns the names of the host's pieces.
  [[nodiscard]] std::string breaks() const;
  Result<RecordedGraph> record_steps(std::size_t first, std::size_t end, std::int64_t tokens,
                                     std::int64_t query) const;
  /// Replays a graph; returns false without running if memory that it was captured with has moved.
  Result<bool> replay(Captured& graph, std::uint64_t addresses, const std::string& name);
  Status write_back(const std::vector<Tensor>& outputs);
  Status run_pieces();
  Status run_segment(Segment& segment);
  Status run_between(PieceId piece);
  Status launch_all(PieceId piece);
  void note(const std::string& text);

  const StitchedGraph& stitched_;
  const Graph& source_;
  const Plan& plan_;
  Driver& driver_;
  RuntimeOptions options_;
  Dispatcher dispatcher_;
  std::unique_ptr<Backend> host_;
  std::vector<Class> classes_;
  std::vector<Kernel> kernels_;
  MemoryPlan memory_;
  std::vector<Address> blocks_;                              ///< all allocations
  std::vector<std::pair<std::string, std::int64_t>> asked_;  ///< purpose and bytes
  Address arena_ = 0, valid_ = 0;  ///< valid_: the number of valid tokens; 0: no launch reads it
  DeviceTensor workspace_;         ///< shared by library calls
  std::vector<std::vector<Address>> zeros_;               ///< by piece: see PieceProgram
  std::vector<Address> address_;                          ///< by source value; 0: none
  std::vector<std::map<std::int64_t, Captured>> graphs_;  ///< by piece, then size
  std::map<std::int64_t, std::vector<Segment>> steps_;    ///< whole steps, by size
  /// Executables by piece, for pieces that are neither captured nor attention kernels. Not shared:
  /// an op may identify its state by its layer.
  std::vector<std::unique_ptr<Executable>> between_;
  DeviceAttention pages_;
  DimId attention_rows_;  ///< rows of every piece with attention kernels
  std::optional<Live> live_;
  RankGroups stated_;  ///< groups that the source states; a piece may only name them
  RankGroups groups_;  ///< groups of the current step
  bool captured_ = false, stepped_ = false;
  RuntimeCounters counters_;
  std::vector<std::string> notes_;
  std::vector<CaptureTime> capture_times_;
};

}  // namespace pw::cuda
