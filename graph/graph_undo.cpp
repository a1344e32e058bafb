// Exports Graph's undo journal: one inverse record a mutation, applied backwards.
#include <utility>

#include "base/assert.hpp"
#include "graph/graph.hpp"

namespace pw {

void Graph::record(Undo::Kind kind, std::uint32_t subject, std::uint32_t index, std::uint32_t old) {
  ++edition_;
  if (recording_) undo_.push_back({kind, subject, index, old});
}

void Graph::rollback(Checkpoint to) {
  PW_ASSERT(to <= undo_.size(), "rollback to a checkpoint that is gone");
  bool was_recording = std::exchange(recording_, false);
  ++edition_;
  while (undo_.size() > to) {
    Undo u = undo_.back();
    undo_.pop_back();
    NodeId node{u.subject};
    switch (u.kind) {
      case Undo::Kind::added: detach(node); break;
      case Undo::Kind::erased:
        attach(node, u.old == NodeId::kNone ? NodeId() : NodeId(u.old));
        break;
      case Undo::Kind::operand:
        set_operand(node, u.index, u.old == ValueId::kNone ? ValueId() : ValueId(u.old));
        break;
      case Undo::Kind::attributes: nodes_[node].attributes = AttributesId(u.old); break;
      case Undo::Kind::type: values_[ValueId(u.subject)].type = TypeId(u.old); break;
      case Undo::Kind::op: nodes_[node].op = OpId(u.old); break;
      case Undo::Kind::output: set_output(u.subject, ValueId(u.old)); break;
      case Undo::Kind::group:
        nodes_[node].group = u.old == NameId::kNone ? NameId() : NameId(u.old);
        break;
      case Undo::Kind::rename: {
        Value& v = values_[ValueId(u.subject)];
        NodeId n = v.producer;
        if (n.valid() && nodes_[n].name == v.name) nodes_[n].name = NameId(u.old);
        names_.erase(v.name.index);
        v.name = NameId(u.old);
        names_.insert(u.old);
        break;
      }
      case Undo::Kind::moved:
        unlink_node(node);
        link_node(node, u.old == NodeId::kNone ? NodeId() : NodeId(u.old));
        break;
    }
  }
  insertion_ = {};
  recording_ = was_recording;
}

}  // namespace pw
