// Exports GraphArrays.
#include "graph/graph_arrays.hpp"

#include <cstddef>

namespace pw {

GraphArrays GraphArrays::of(const Graph& graph) {
  // What declarations() says in numbers.
  static_assert(sizeof(Graph::Node) == 20 && offsetof(Graph::Node, op) == 0 &&
                offsetof(Graph::Node, attributes) == 4 &&
                offsetof(Graph::Node, first_operand) == 8 &&
                offsetof(Graph::Node, first_result) == 12 && offsetof(Graph::Node, marks) == 16);
  static_assert(offsetof(Graph::Place, previous) == 0 && offsetof(Graph::Place, next) == 4 &&
                offsetof(Graph::Place, label) == 8);
  static_assert(offsetof(Graph::Value, producer) == 0 && offsetof(Graph::Value, first_use) == 8 &&
                offsetof(Graph::Value, marks) == 12);
  static_assert(offsetof(Graph::Use, value) == 0 && offsetof(Graph::Use, previous) == 4 &&
                offsetof(Graph::Use, next) == 8);
  static_assert(Graph::kCountShift == 28 && Graph::kMany == 7 && Graph::kType == 0xfffff &&
                Graph::kOutput == 0x100000 && Graph::kUseShift == 23 && Graph::kManyUses == 511 &&
                Graph::kInput == 0xffffff00u && Graph::kSlotBits == 4 &&
                Graph::kWideUse == 0x80000000u && NodeId::kNone == 0xffffffffu);
  GraphArrays out;
  out.nodes = graph.nodes_.raw().data();
  out.places = graph.places_.raw().data();
  out.values = graph.values_.raw().data();
  out.uses = graph.uses_.data();
  out.graph = &graph;
  out.result_count = [](const Graph* g, std::uint32_t n) {
    return static_cast<std::uint32_t>(g->result_count(NodeId(std::size_t{n})));
  };
  out.use_count = [](const Graph* g, std::uint32_t v) {
    return static_cast<std::uint32_t>(g->use_count(ValueId(std::size_t{v})));
  };
  out.type = [](const Graph* g, std::uint32_t v) { return g->type(ValueId(std::size_t{v})).index; };
  out.user = [](const Graph* g, std::uint32_t u) { return g->user(UseId(std::size_t{u})).index; };
  out.slot = [](const Graph* g, std::uint32_t u) {
    return static_cast<std::uint32_t>(g->use_operand(UseId(std::size_t{u})));
  };
  return out;
}

std::string_view GraphArrays::declarations() {
  return R"(typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;
static const u32 kNone = 0xffffffffu;
struct Node { u32 op, attributes, first_operand, first_result, marks; };
struct Place { u32 previous, next; u64 label; };
struct Value { u32 producer, name, first_use, marks; };
struct Use { u32 value, previous, next; };
struct Graph {
  const Node* nodes;
  const Place* places;
  const Value* values;
  const Use* uses;
  const void* graph;
  u32 (*wide_result_count)(const void*, u32);
  u32 (*wide_use_count)(const void*, u32);
  u32 (*wide_type)(const void*, u32);
  u32 (*wide_user)(const void*, u32);
  u32 (*wide_slot)(const void*, u32);
};
#define PW_INLINE static inline __attribute__((always_inline))
PW_INLINE u32 op(const Graph& g, u32 n) { return g.nodes[n].op; }
PW_INLINE u32 attributes(const Graph& g, u32 n) { return g.nodes[n].attributes; }
PW_INLINE u32 operand_count(const Graph& g, u32 n) {
  return g.nodes[n + 1].first_operand - g.nodes[n].first_operand;
}
PW_INLINE u32 operand(const Graph& g, u32 n, u32 i) {
  return g.uses[g.nodes[n].first_operand + i].value;
}
PW_INLINE u32 result_count(const Graph& g, u32 n) {
  const u32 count = (g.nodes[n].marks >> 28) & 7;
  return count < 7 ? count : g.wide_result_count(g.graph, n);
}
PW_INLINE u32 result(const Graph& g, u32 n, u32 i) { return g.nodes[n].first_result + i; }
PW_INLINE u32 producer(const Graph& g, u32 v) {
  const u32 n = g.values[v].producer;
  return n < 0xffffff00u ? n : kNone;
}
PW_INLINE u32 type(const Graph& g, u32 v) {
  const u32 t = g.values[v].marks & 0xfffffu;
  return t != 0xfffffu ? t : g.wide_type(g.graph, v);
}
PW_INLINE u32 use_count(const Graph& g, u32 v) {
  const u32 count = g.values[v].marks >> 23;
  return count < 511 ? count : g.wide_use_count(g.graph, v);
}
PW_INLINE bool is_output(const Graph& g, u32 v) { return (g.values[v].marks & 0x100000u) != 0; }
PW_INLINE u32 first_use(const Graph& g, u32 v) { return g.values[v].first_use; }
PW_INLINE u32 user(const Graph& g, u32 u) {
  return (u & 0x80000000u) == 0 ? u >> 4 : g.wide_user(g.graph, u);
}
PW_INLINE u32 slot(const Graph& g, u32 u) {
  return (u & 0x80000000u) == 0 ? u & 15u : g.wide_slot(g.graph, u);
}
PW_INLINE u32 next_use(const Graph& g, u32 u) {
  return g.uses[g.nodes[user(g, u)].first_operand + slot(g, u)].next;
}
PW_INLINE u64 label(const Graph& g, u32 n) { return g.places[n].label; }
PW_INLINE u32 next(const Graph& g, u32 n) { return g.places[n].next; }
)";
}

}  // namespace pw
