// Exports Graph's undo journal: one inverse record a mutation, applied backwards.
#include <utility>

#include "base/assert.hpp"
#include "graph/graph.hpp"

namespace pw {
namespace {

template <class I>
I id_of(std::uint32_t index) {
  return index == I::kNone ? I() : I(index);
}

}  // namespace

void Graph::stop_undo() {
  recording_ = false;
  std::vector<Undo>().swap(undo_);
}

void Graph::rollback(Checkpoint to) {
  PW_ASSERT(to <= undo_.size(), "rollback to a checkpoint that is gone");
  const bool was_recording = std::exchange(recording_, false);
  ++edition_;
  while (undo_.size() > to) {
    const Undo u = undo_.back();
    undo_.pop_back();
    const NodeId node{u.subject};
    switch (u.kind) {
      case Undo::Kind::added: detach(node); break;
      case Undo::Kind::erased: attach(node, id_of<NodeId>(u.old)); break;
      case Undo::Kind::operand: {
        const UseId use{u.subject};
        unlink_use(use);
        link_use(use, id_of<ValueId>(u.old));
        break;
      }
      case Undo::Kind::attributes: nodes_[node].attributes = AttributesId(u.old); break;
      case Undo::Kind::type: put_type(ValueId(u.subject), TypeId(u.old)); break;
      case Undo::Kind::op: nodes_[node].op = OpId(u.old); break;
      case Undo::Kind::output: set_output(u.subject, ValueId(u.old)); break;
      case Undo::Kind::provenance: set_provenance(node, u.old); break;
      case Undo::Kind::name: set_name(ValueId(u.subject), id_of<ValueNameId>(u.old)); break;
      case Undo::Kind::moved: move(node, id_of<NodeId>(u.old)); break;
    }
  }
  insertion_ = {};
  recording_ = was_recording;
}

}  // namespace pw
