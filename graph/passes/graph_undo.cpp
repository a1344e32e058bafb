// Keeps an inverse record of each mutation, and applies them backwards.
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
  undo_.clear();
}

void Graph::undo_operand(UseId u, ValueId old) {
  unlink_use(u);
  Use& use = at(u);
  use.value = old;
  use.previous = use.next = {};
  if (!old.valid()) return;
  if (!undo_.empty() && undo_.back().kind == Undo::Kind::behind) {
    use.previous = UseId(undo_.back().old);
    use.next = at(use.previous).next;
    undo_.pop_back();
  } else {
    use.next = values_[old].first_use;
  }
  relink_use(u);
}

void Graph::undo_uses(ValueId from, ValueId to) {
  const UseId last{undo_.back().subject};
  const std::size_t count = undo_.back().old;
  undo_.pop_back();
  Value &before = values_[from], &after = values_[to];
  before.first_use = std::exchange(after.first_use, std::exchange(at(last).next, UseId()));
  if (after.first_use.valid()) at(after.first_use).previous = {};
  for (UseId u = before.first_use; u.valid(); u = at(u).next) at(u).value = from;
  set_use_count(from, count);
  set_use_count(to, use_count(to) - count);
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
      case Undo::Kind::operand: undo_operand(UseId(u.subject), id_of<ValueId>(u.old)); break;
      case Undo::Kind::uses: undo_uses(ValueId(u.subject), ValueId(u.old)); break;
      case Undo::Kind::behind:
      case Undo::Kind::last: PW_ASSERT(false, "undone with the record that follows"); break;
      case Undo::Kind::attributes: nodes_[node].attributes = AttributesId(u.old); break;
      case Undo::Kind::type: put_type(ValueId(u.subject), TypeId(u.old)); break;
      case Undo::Kind::op: put_op(node, OpId(u.old)); break;
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
