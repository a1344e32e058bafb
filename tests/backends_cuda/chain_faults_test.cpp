// Faults planted in chains of products: waits and announcements that are absent, elsewhere,
// conditional, or of another count; memory that is used again too early; and programmatic edges of
// kernels that must not start early. Proof or emulator finds each.
//
// All faulty texts of a chain are one text, in which a variable selects the fault. Most faults show
// only if certain blocks start before others, so each runs in orders of blocks that can show it. A
// fault counts as found only if the chain without it gives the right bits in the same order, and if
// a report, if any, is about synchronization.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "tests/backends_cuda/streamed_cases.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr std::int64_t kFaultyRows = 5;  // two blocks of rows

/// Two arguments of a launch in the same memory, of which the second is written.
struct SharedMemoryOf {
  std::size_t first = 0, second = 0;
};

struct ChainOutcome {
  std::string report;                ///< of a fault; empty: none
  std::vector<std::string> written;  ///< bytes by written argument
};

/// A launch of a chain on the host, with other texts of its kernel.
class ChainLaunch {
 public:
  explicit ChainLaunch(StreamedPiece& piece) : inputs_(piece.inputs(piece.graph, kFaultyRows)) {
    node = need(piece.runtime->record(PieceId(0), kFaultyRows), *piece.context).nodes.at(0);
    for (const cuda::Kernel& k : piece.runtime->kernels())
      if (k.name == node.name) kernel = cuda::waiting(k);
    for (const auto* tensors : {&node.reads, &node.writes})
      for (const cuda::DeviceTensor& t : *tensors) {
        arguments.push_back(t);
        memory_.push_back(reinterpret_cast<char*>(t.address));
        most_ = std::max(most_, size(t));
      }
    std::size_t input = 0;
    for (std::size_t i = 0; i < node.reads.size(); ++i)
      if (of_rows(i) && arguments[i].dtype == DType::bf16)
        std::memcpy(memory_[i], inputs_.at(input++).data(), size(arguments[i]));
      else if (arguments[i].dtype == DType::i64)
        std::memcpy(memory_[i], inputs_.at(2).data(), size(arguments[i]));
  }
  static std::size_t size(const cuda::DeviceTensor& t) {
    return static_cast<std::size_t>(t.bytes());
  }
  /// Returns true for a matrix with a row for each token.
  [[nodiscard]] bool of_rows(std::size_t argument) const {
    const Extents& extents = arguments[argument].extents;
    return extents.size() == 2 && extents[0] == kFaultyRows;
  }
  [[nodiscard]] std::size_t reads() const { return node.reads.size(); }

  [[nodiscard]] ChainOutcome run(const cuda::HostKernels& host, std::uint64_t seed, bool early,
                                 const SharedMemoryOf* shared = nullptr) const {
    std::vector<void*> pointers(memory_.begin(), memory_.end());
    std::vector<char> room(most_);
    for (std::size_t i = reads(); i < arguments.size(); ++i)
      std::memset(memory_[i], i == kernel.zero ? 0 : 0xff, size(arguments[i]));
    if (shared != nullptr) {
      std::memcpy(room.data(), memory_[shared->first], size(arguments[shared->first]));
      pointers[shared->first] = pointers[shared->second] = room.data();
    }
    std::function<Status()> earlier;
    if (early) earlier = [] { return Status(); };
    const auto done = host.run(kernel.name, pointers, node.params, seed, nullptr, earlier);
    ChainOutcome out;
    if (!done) out.report = done.error().front().code + ": " + done.error().front().message;
    for (std::size_t i = reads(); i < arguments.size(); ++i)
      out.written.emplace_back(static_cast<const char*>(pointers[i]), size(arguments[i]));
    return out;
  }

  cuda::LaunchNode node;
  cuda::Kernel kernel;
  std::vector<cuda::DeviceTensor> arguments;  ///< reads, then writes

 private:
  std::vector<Tensor> inputs_;
  std::vector<char*> memory_;
  std::size_t most_ = 0;
};

/// The first block of a product or a later one to start.
struct FirstBlock {
  std::size_t place = 0;            ///< in the order of all blocks
  std::int64_t block = 0, row = 0;  ///< number within its product, and block of rows
};
using Shows = std::function<bool(const FirstBlock&)>;
const Shows kAnyBlock = [](const FirstBlock&) { return true; };

struct ChainFault {
  std::string kind, text;
  std::size_t product = 0;  ///< the first block of it or of later ones to start is one of it, which
  Shows shows = kAnyBlock;  ///< may show the fault
  std::vector<std::pair<std::size_t, std::string>> before = {};  ///< text by line
  std::optional<std::size_t> without = {};                       ///< line
};

/// Faults of a chain's text.
class ChainFaults {
 public:
  ChainFaults(const cuda::Kernel& kernel, Random& random) : kernel_(kernel), random_(random) {
    const std::string& source = kernel.source;
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = source.find('\n', at);
      lines.push_back(source.substr(at, end - at));
      at = end + 1;
    }
    while (lines[begin_].find("__global__") == std::string::npos) ++begin_;
    find_products();
    for (std::size_t i = begin_; i < lines.size(); ++i) {
      if (begins(i, "pw_wait_for_earlier();")) plant_first_wait(i);
      if (begins(i, "  pw_await(")) plant_wait(i);
      if (begins(i, "  pw_announce(")) plant_announcement(i);
      if (begins(i, "  pw_leave_grid(")) plant_end(i);
    }
  }

  /// Returns the text of all faults; `pw_fault` selects the one of that number, from 1 on.
  [[nodiscard]] std::string source() const {
    std::vector<std::string> before(lines.size()), instead(lines.size());
    for (std::size_t i = 0; i < faults.size(); ++i) {
      for (const auto& [line, text] : faults[i].before)
        before[line] += fmt::format("if (pw_fault == {}) {{ {} }}\n", i + 1, text);
      if (const auto line = faults[i].without)
        instead[*line] += fmt::format("if (pw_fault != {}) ", i + 1);
    }
    std::string out = "static int pw_fault = 0;\n";
    for (std::size_t i = 0; i < lines.size(); ++i) out += before[i] + instead[i] + lines[i] + "\n";
    return out;
  }
  static constexpr const char* kSelect =
      "extern \"C\" void select_fault(int fault) { pw_fault = fault; }";
  /// Returns the kernel with one fault.
  [[nodiscard]] cuda::Kernel only(const ChainFault& fault) const {
    cuda::Kernel out = kernel_;
    out.source.clear();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const auto& [line, text] : fault.before)
        if (line == i) out.source += text + "\n";
      if (i != fault.without) out.source += lines[i] + "\n";
    }
    return out;
  }
  /// Returns the product of a line.
  [[nodiscard]] std::size_t product_of_line(std::size_t line) const {
    std::size_t out = 0;
    while (out < ends_.size() && ends_[out] < line) ++out;
    return out;
  }

  std::vector<ChainFault> faults;
  std::vector<std::string> lines;
  std::vector<std::int64_t> blocks;  ///< of each product, for a block of rows

 private:
  [[nodiscard]] bool begins(std::size_t line, const std::string& text) const {
    return lines[line].starts_with(text);
  }
  [[nodiscard]] std::size_t next(std::size_t line, const std::string& text) const {
    while (line < lines.size() && !begins(line, text)) ++line;
    REQUIRE(line < lines.size());
    return line;
  }
  [[nodiscard]] std::int64_t across(std::size_t line) const {
    const std::string factor = "across * ";
    return std::stoll(lines[line].substr(lines[line].find(factor) + factor.size()));
  }
  void find_products() {
    std::int64_t before = 0;
    for (std::size_t i = begin_; i < lines.size(); ++i) {
      if (begins(i, "  pw_announce(")) ends_.push_back(i);
      if (begins(i, "  pw_await(")) blocks.push_back(across(i));
      if (begins(i, "  pw_leave_grid(")) {
        for (const std::int64_t of : blocks) before += of;
        blocks.push_back(across(i) - before);
      }
    }
    REQUIRE(std::ssize(blocks) == kernel_.phases);
    REQUIRE(ends_.size() + 1 == blocks.size());
  }
  std::int64_t below(std::int64_t most) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most)));
  }

  ChainFault& remove(std::size_t line, const std::string& kind) {
    faults.push_back({kind, lines[line], product_of_line(line), kAnyBlock, {}, line});
    return faults.back();
  }
  ChainFault& change(std::size_t line, const std::string& kind, const std::string& to) {
    ChainFault& fault = remove(line, kind);
    fault.text = to;
    fault.before = {{line, to}};
    return fault;
  }
  ChainFault& change(std::size_t line, const std::string& kind, const std::string& from,
                     const std::string& to) {
    std::string text = lines[line];
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return change(line, kind, text.replace(at, from.size(), to));
  }
  ChainFault& move(std::size_t line, const std::string& kind, std::size_t to) {
    ChainFault& fault = remove(line, kind);
    fault.before = {{to, lines[line]}};
    return fault;
  }
  void limit(std::size_t line, const std::string& kind, const std::string& condition,
             const Shows& shows = kAnyBlock) {
    change(line, kind, fmt::format("if ({}) {{ {} }}", condition, lines[line])).shows = shows;
  }
  void limit_threads(std::size_t line, const std::string& kind) {
    limit(line, kind, "threadIdx.x < 32");
    limit(line, kind, fmt::format("threadIdx.x != {}", below(kernel_.threads)));
  }
  /// `many`: conditions of single blocks of a product.
  void limit_blocks(std::size_t line, const std::string& kind, int many) {
    const std::size_t product = product_of_line(line);
    const bool waits = begins(line, "  pw_await(");
    std::set<std::int64_t> single;
    for (int i = 0; i < many; ++i) single.insert(below(blocks[product]));
    for (const std::int64_t one : single)
      limit(line, kind, fmt::format("block != {}", one),
            [one, waits](const FirstBlock& b) { return !waits || b.block == one; });
    limit(line, kind, "block % 2 != 0",
          [waits](const FirstBlock& b) { return !waits || b.block % 2 == 0; });
    limit(line, kind, "row0 == 0", [waits](const FirstBlock& b) { return !waits || b.row != 0; });
    limit(line, kind, "row0 != 0", [waits](const FirstBlock& b) { return !waits || b.row == 0; });
  }

  void plant_first_wait(std::size_t i) {
    remove(i, "first wait removed");
    move(i, "first wait moved", next(i, "  const int number"));
    move(i, "first wait moved", next(i, "  pw_leave_grid("));
    limit_threads(i, "first wait made conditional");
    limit(i, "first wait made conditional", "blockIdx.x == 0");
    for (int n = 0; n < 4; ++n)
      limit(i, "first wait made conditional",
            fmt::format("blockIdx.y != {}", below(kernel_.column_blocks)));
  }
  void plant_wait(std::size_t i) {
    remove(i, "wait removed");
    const std::size_t product = next(i, "  if (count == 1) {");
    if (product != i + 1) move(i, "wait moved after the rows", product);
    std::size_t end = product;
    while (!begins(end, "  pw_announce(") && !begins(end, "  pw_leave_grid(")) ++end;
    move(i, "wait moved after the product", begins(end, "  pw_leave_grid(") ? end - 1 : end);
    limit_threads(i, "wait made conditional");
    limit_blocks(i, "wait made conditional", 6);
    const std::string state = lines[i].substr(11, lines[i].find(' ', 11) - 11);
    limit(i, "wait made conditional", "*" + state + " > 1",
          [](const FirstBlock& b) { return b.place == 0; });
    // The last block of the product before is of the last rows.
    change(i, "wait for fewer blocks", "across * ", "-1 + across * ").shows =
        [](const FirstBlock& b) { return b.row == 1; };
    change(i, "wait for fewer blocks", fmt::format("across * {}", across(i)),
           fmt::format("across * {}", (across(i) + 1) / 2))
        .shows = [](const FirstBlock& b) { return b.row == 1; };
    change(i, "wait for another product", "pw_await(", "pw_await(-1 + ");
  }
  void plant_announcement(std::size_t i) {
    remove(i, "announcement removed");
    change(i, "announcement twice", lines[i] + lines[i]);
    std::size_t first = i;
    while (!begins(first, "  if (count == 1) {")) --first;
    move(i, "announcement moved before the product", first);
    limit_threads(i, "announcement made conditional");
    limit_blocks(i, "announcement made conditional", 6);
    change(i, "announcement of another product", "pw_announce(", "pw_announce(1 + ");
  }
  void plant_end(std::size_t i) {
    remove(i, "end removed");
    limit(i, "end made conditional", "threadIdx.x != 0");
    for (int n = 0; n < 3; ++n)
      limit(i, "end made conditional", fmt::format("block != {}", below(blocks[0])));
    change(i, "end of another count", "across * ", "across * 2 * ");
  }

  const cuda::Kernel& kernel_;
  Random& random_;
  std::size_t begin_ = 0;
  std::vector<std::size_t> ends_;  ///< lines of announcements
};

/// The products that write and last read each matrix with a row for each token.
struct ChainValue {
  std::size_t argument = 0;
  int written = -1, read = -1;  ///< written: -1 for an input; read: the last, or after all
};

std::vector<ChainValue> values_of_chain(const ChainLaunch& launch, const ChainFaults& text) {
  const int products = static_cast<int>(text.blocks.size());
  std::map<std::size_t, ChainValue> values;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    if (launch.of_rows(i)) values[i] = {i};
  const std::regex name("const auto p(\\d+) = q(\\d+);");
  const std::regex access("pw_(store|write|load|read<\\d+>|group<[^>]*>)\\((p|q)(\\d+)");
  std::map<std::size_t, std::size_t> named;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string& line = text.lines[i];
    const int product = static_cast<int>(text.product_of_line(i));
    std::smatch m;
    if (std::regex_search(line, m, name)) named[std::stoul(m[1])] = std::stoul(m[2]);
    for (std::sregex_iterator at(line.begin(), line.end(), access), end; at != end; ++at) {
      const std::size_t number = std::stoul((*at)[3]);
      const auto value = values.find((*at)[2] == "q" ? number : named.at(number));
      if (value == values.end()) continue;
      const bool writes = (*at)[1] == "store" || (*at)[1] == "write";
      (writes ? value->second.written : value->second.read) = product;
    }
  }
  std::vector<ChainValue> out;
  for (auto& [argument, value] : values) {
    CHECK((value.written >= 0) == (argument >= launch.reads()));
    if (value.read < 0) value.read = products;
    out.push_back(value);
  }
  return out;
}

/// Checks all faults of a layer's chain.
class ChainCheck {
 public:
  explicit ChainCheck(const StreamedLayer& layer, Random& random)
      : piece_(layer.text(false), std::make_unique<RecordingDriver>()),
        launch_(piece_),
        text_(launch_.kernel, random),
        host_(need(compiled(), *piece_.context)),
        select_(reinterpret_cast<void (*)(int)>(host_.symbol("select_fault"))) {
    INFO(layer.text(false));
    REQUIRE(launch_.kernel.phases == 4);
    select_(0);
    right_ = launch_.run(host_, 1, false);
    REQUIRE(right_.report == "");
    // The results are the interpreter's.
    for (const auto& wanted : piece_.wanted(layer.text(true), kFaultyRows))
      CHECK(std::any_of(right_.written.begin(), right_.written.end(),
                        [&](const std::string& got) { return values_in(got) == wanted; }));
    for (std::uint64_t seed = 2; seed < 10; ++seed)
      CHECK(gives_right_bits(launch_.run(host_, seed, seed % 2 == 0)));
  }

  /// Returns the faults by kind.
  std::map<std::string, std::size_t> run() {
    for (std::size_t i = 0; i < text_.faults.size(); ++i)
      check_text(text_.faults[i], static_cast<int>(i) + 1);
    check_memory();
    check_edges();
    return counts_;
  }

 private:
  static constexpr std::uint64_t kSeeds = 20000, kOrders = 100;

  Result<cuda::HostKernels> compiled() {
    cuda::Kernel all = launch_.kernel;
    all.source = text_.source();
    return cached_kernels({&all, 1}, ChainFaults::kSelect);
  }
  static std::vector<double> values_in(const std::string& bf16) {
    const auto count = static_cast<std::int64_t>(bf16.size() / 2);
    Tensor out(DType::bf16, {count});
    std::memcpy(out.data(), bf16.data(), bf16.size());
    return values_of(out.view());
  }
  [[nodiscard]] bool gives_right_bits(const ChainOutcome& outcome) const {
    return outcome.report.empty() && outcome.written == right_.written;
  }
  /// Checks that the chain without a fault gives the right bits in an order.
  void check_right(std::uint64_t seed) {
    if (!checked_.insert(seed).second) return;
    select_(0);
    CHECK(gives_right_bits(launch_.run(host_, seed, true)));
  }
  [[nodiscard]] bool may_show(const ChainFault& fault, std::uint64_t seed) const {
    std::int64_t before = 0;
    for (std::size_t p = 0; p < fault.product; ++p) before += text_.blocks[p];
    constexpr std::int64_t kAcross = 2;
    const auto order = host_.block_order(launch_.kernel.name, kFaultyRows, seed);
    for (std::size_t place = 0; place < order.size(); ++place) {
      const std::int64_t block = order[place] / kAcross - before;
      if (block < 0) continue;
      return block < text_.blocks[fault.product] &&
             fault.shows({place, block, order[place] % kAcross});
    }
    return false;
  }
  static bool concerns_order(const std::string& report) {
    for (const char* part :
         {"without a wait for the earlier kernel", "before it waits for the earlier kernel",
          "divergent:", "awaited blocks were not counted", "after they have announced their end"})
      if (report.find(part) != std::string::npos) return report.starts_with("PW1225");
    return false;
  }

  void check_text(const ChainFault& fault, int number) {
    INFO(fault.kind << ": " << fault.text);
    if (fault.kind.starts_with("first wait")) CHECK_FALSE(waits_first(text_.only(fault)));
    std::uint64_t seed = 0;
    for (std::uint64_t orders = 0; orders < kOrders; ++orders) {
      do ++seed;
      while (seed < kSeeds && !may_show(fault, seed));
      REQUIRE(seed < kSeeds);
      select_(number);
      const ChainOutcome outcome = launch_.run(host_, seed, true);
      if (gives_right_bits(outcome)) continue;
      INFO(outcome.report);
      CHECK((outcome.report.empty() || concerns_order(outcome.report)));
      check_right(seed);
      ++counts_[fault.kind];
      return;
    }
    FAIL_CHECK("not found");
  }

  /// Gives two values the same memory. It is a fault if the second is written while the first has
  /// readers that have not ended.
  void check_memory() {
    select_(0);
    const std::vector<ChainValue> values = values_of_chain(launch_, text_);
    for (const ChainValue& a : values) {
      for (const ChainValue& b : values) {
        if (b.written < 0 || a.argument == b.argument || a.written > b.written) continue;
        if (a.written == b.written && a.argument > b.argument) continue;
        INFO(a.argument << " and " << b.argument << " share memory");
        const bool fault = b.written <= a.read;
        const SharedMemoryOf shared{a.argument, b.argument};
        bool found = false;
        for (std::uint64_t seed = 1; seed < (fault ? kOrders : 4) && !found; ++seed) {
          const ChainOutcome outcome = launch_.run(host_, seed, true, &shared);
          CHECK(outcome.report == "");
          check_right(seed);
          for (const ChainValue& c : values)
            if (c.written >= 0 && (fault ? c.read == 4 : c.argument != a.argument))
              found = found || outcome.written[c.argument - launch_.reads()] !=
                                   right_.written[c.argument - launch_.reads()];
        }
        CHECK(found == fault);
        if (fault) ++counts_["memory used again too early"];
      }
    }
  }

  /// The chain after other nodes of a graph.
  void check_edges() {
    const std::set<std::string> waiting{launch_.kernel.name};
    CHECK(waits_first(launch_.kernel));
    cuda::LaunchNode early = launch_.node, copy, library;
    early.name = launch_.kernel.name;
    early.early = true;
    copy.kind = cuda::LaunchNode::Kind::copy;
    library.kind = cuda::LaunchNode::Kind::library;
    const auto graph_of = [&](std::vector<cuda::LaunchNode> nodes,
                              const std::vector<std::size_t>& after) {
      nodes.back().after = after;
      return cuda::RecordedGraph{"chains", std::move(nodes)};
    };
    CHECK(cuda::check_early(graph_of({launch_.node, early}, {0}), waiting));
    const auto refused = [&](const cuda::RecordedGraph& graph, const std::set<std::string>& names) {
      const Status done = cuda::check_early(graph, names);
      REQUIRE(!done);
      CHECK(done.error().front().code == "PW1251");
      ++counts_["edge made programmatic"];
    };
    cuda::LaunchNode unwaited = launch_.node;
    unwaited.early = true;
    refused(graph_of({launch_.node, unwaited}, {0}), waiting);
    refused(graph_of({copy, early}, {0}), waiting);
    refused(graph_of({library, early}, {0}), waiting);
    refused(graph_of({launch_.node, launch_.node, early}, {0, 1}), waiting);
    refused(graph_of({launch_.node, early}, {}), waiting);
  }

  StreamedPiece piece_;
  ChainLaunch launch_;
  ChainFaults text_;
  cuda::HostKernels host_;
  void (*select_)(int);
  ChainOutcome right_;
  std::set<std::uint64_t> checked_;
  std::map<std::string, std::size_t> counts_;
};

/// A layer as small as its products stream.
StreamedLayer small_layer(Random& random) {
  const auto upto = [&](std::uint64_t n) { return static_cast<std::int64_t>(random.below(n)); };
  return {8 * (33 + upto(9)), 8 + upto(41), 1 + upto(3), 1 + upto(2), 8 + 2 * upto(5)};
}

/// Checks layers until there are so many faults, and prints them by kind.
void check_chain_faults(std::size_t least, std::uint64_t seed) {
  INFO("seed " << seed);
  Random random(seed);
  std::size_t all = 0, layers = 0;
  std::map<std::string, std::size_t> counts;
  for (; all < least; ++layers) {
    for (const auto& [kind, count] : ChainCheck(small_layer(random), random).run()) {
      counts[kind] += count;
      all += count;
    }
  }
  std::printf("%zu faults in %zu chains\n", all, layers);
  for (const auto& [kind, count] : counts) std::printf("  %4zu %s\n", count, kind.c_str());
  CHECK(counts.size() == 19);
}

}  // namespace

TEST_CASE("chains: every fault planted in a chain is found", "[cuda][streamed]") {
  if (no_host_compiler()) return;
  check_chain_faults(1, 49);
}

TEST_CASE("chains: 1000 planted faults are found", "[.][cuda][streamed][slow]") {
  if (no_host_compiler()) return;
  check_chain_faults(1000, 5);
}
