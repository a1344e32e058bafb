// Runs steps through a plan on a device: pieces that the plan captures, or whole steps, are
// recorded once for each size and replayed, ops between pieces are launched. All memory is
// allocated and everything recorded before the first step.
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
  bool strict = false;  ///< library calls and ops between graphs give the interpreter's bits
  rows::GroupingOptions grouping;
  /// Tokens of all sequences whose keys and values have a place from the start, where attention is
  /// kernels; 0: as many as a step of the plan may have. More get a place when they come, and what
  /// was captured whole before is then stale.
  std::int64_t cached_tokens = 0;
  /// Schedules that were tuned for the driver's architecture; null: each kernel has the usual one.
  const ScheduleTable* schedules = nullptr;
};

/// Since the runtime was made. A class is recorded once for each size; each of its pieces has an
/// executable of its own, with its own addresses.
struct RuntimeCounters {
  std::size_t pieces = 0, capturable_pieces = 0, piece_classes = 0;
  std::size_t compilations = 0;     ///< of classes
  std::size_t graphs_captured = 0;  ///< class and size, and whole steps of a size
  std::size_t whole_steps = 0;      ///< of graphs_captured
  std::size_t executables = 0;      ///< piece and size, and whole steps of a size
  std::size_t graph_nodes = 0;      ///< of the executables
  std::size_t failed_captures = 0;  ///< graphs that run launch by launch instead
  std::size_t allocations = 0;
  std::size_t replays = 0, launches = 0, ops_between = 0;
  std::size_t stale = 0;  ///< replays that did not happen, as an address had changed
};

class Runtime {
 public:
  /// Compiles and allocates everything but the contents of inputs. PW1250 with a table of what was
  /// asked for where memory is short. Where the plan has places for what launches hand to each
  /// other, it is one that a runtime had: those are taken as they are, or refused where they do not
  /// suit the graph or its launches (PW1256). The stitched graph, its source, the plan and
  /// the driver must outlive it.
  static Result<std::unique_ptr<Runtime>> make(const StitchedGraph& stitched, const Graph& source,
                                               const Plan& plan, Driver& driver,
                                               const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Weights and buffers to the device, each to memory of its own. Again: to other memory; what was
  /// captured before is then stale.
  Status load(Weights& weights);
  /// Every captured piece at every size of the plan, then whole steps, the largest first. Once,
  /// after load(); PW1255 after the first step.
  Status capture();
  Result<StepResult> run(const Step& step, Weights& weights, const RunOptions& options = {});

  // ---- a step by hand: begin, every piece in the plan's order, then the outputs. PW1254 in any
  // other order.
  Result<StepReport> begin_step(const Step& step, Weights& weights, const RunOptions& options = {});
  Status run_piece(PieceId piece);
  Result<std::vector<Tensor>> end_step();

  /// With it the plan gives the same addresses again.
  [[nodiscard]] const MemoryPlan& memory() const { return memory_; }
  [[nodiscard]] const RuntimeCounters& counters() const { return counters_; }
  /// Why pieces are not captured, and what went otherwise than planned; each once.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// What its launches run, each once.
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  /// The graph that is recorded for a piece at a size.
  Result<RecordedGraph> record(PieceId piece, std::int64_t tokens) const;
  /// And for a whole step, of `query` new tokens of each sequence; 0: not equally many.
  Result<RecordedGraph> record_step(std::int64_t tokens, std::int64_t query = 0) const;
  /// What capture() took for each size, in the order in which it recorded them.
  struct CaptureTime {
    std::int64_t tokens = 0;
    double seconds = 0;
  };
  [[nodiscard]] const std::vector<CaptureTime>& capture_times() const { return capture_times_; }

 private:
  struct Class {
    PieceProgram program;
    bool captured = false;
    std::optional<AttentionKernels> attention;  ///< what runs it where it is not captured
    std::vector<Address> literals;
  };
  struct Captured {
    std::unique_ptr<GraphExecutable> executable;
    std::uint64_t addresses = 0;  ///< hash
    LaunchCounts launches = {};
  };
  /// A run of a plan's steps in one graph: all of them, unless ops that run on the host break the
  /// step.
  struct Segment {
    std::size_t first = 0, end = 0;
    Captured graph;
  };
  /// The step that is under way.
  struct Live {
    Step step;
    StepReport report;
    RunOptions options;
    std::int64_t query = 0;  ///< new tokens of each sequence; 0: not equally many
    std::size_t next = 0;    ///< of the plan's steps
  };

  Runtime(const StitchedGraph& stitched, const Graph& source, const Plan& plan, Driver& driver,
          const RuntimeOptions& options);
  [[nodiscard]] bool captures_steps() const;
  /// Of keys and values that have a place from the start, in each layer.
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
  /// Whether an input stays on the device from step to step: a weight or buffer of one size.
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
  /// The launches of a piece at a size, in order, without edges.
  Result<std::vector<LaunchNode>> nodes_of(PieceId piece, std::int64_t tokens) const;
  Result<StepReport> dispatch(const Step& step, const RunOptions& options) const;
  /// What a step's graphs are kept under; 0 where sizes do not depend on tokens.
  [[nodiscard]] std::int64_t captured_size(const StepReport& report) const {
    return plan_.tokens.empty() ? 0 : report.padded;
  }
  Status bind_input(ValueId input, const Tensor& tensor);
  Status check_due(PieceId piece) const;
  Status run_due_piece(PieceId piece);
  class Call;  ///< what a hook sees
  Status tell(PieceId piece, bool after);
  /// The launches of a piece of attention.
  Result<std::vector<LaunchNode>> attention_of(PieceId piece, std::int64_t tokens,
                                               std::int64_t query) const;
  /// Without an executable where the driver refuses it; that is noted.
  Captured instantiate(RecordedGraph graph, std::uint64_t addresses);
  Status capture_pieces(std::int64_t size);
  Status capture_step(std::int64_t size, std::int64_t query);
  [[nodiscard]] bool on_host(std::size_t step) const {
    return between_[plan_.steps[step].piece.index] != nullptr;
  }
  /// The runs of pieces between those on the host, nothing recorded.
  [[nodiscard]] std::vector<Segment> segments() const;
  /// The host's pieces, by name.
  [[nodiscard]] std::string breaks() const;
  Result<RecordedGraph> record_steps(std::size_t first, std::size_t end, std::int64_t tokens,
                                     std::int64_t query) const;
  /// False where memory that it was captured with has moved since: nothing ran.
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
  std::vector<Address> blocks_;                              ///< everything that was allocated
  std::vector<std::pair<std::string, std::int64_t>> asked_;  ///< what for, and bytes
  Address arena_ = 0, valid_ = 0;  ///< valid_: the number of valid tokens; 0: no launch reads it
  DeviceTensor workspace_;         ///< that library calls share
  std::vector<std::vector<Address>> zeros_;               ///< by piece: see PieceProgram
  std::vector<Address> address_;                          ///< by source value; 0: none
  std::vector<std::map<std::int64_t, Captured>> graphs_;  ///< by piece, then size
  std::map<std::int64_t, std::vector<Segment>> steps_;    ///< whole ones, by size
  /// By piece; of those that are not captured and not attention that is kernels. Not shared: an op
  /// may know its state by its layer.
  std::vector<std::unique_ptr<Executable>> between_;
  DeviceAttention pages_;
  DimId attention_rows_;  ///< of every piece of attention that is kernels
  std::optional<Live> live_;
  RankGroups stated_;  ///< by the source; a piece may only name them
  RankGroups groups_;  ///< of the step under way
  bool captured_ = false, stepped_ = false;
  RuntimeCounters counters_;
  std::vector<std::string> notes_;
  std::vector<CaptureTime> capture_times_;
};

}  // namespace pw::cuda
