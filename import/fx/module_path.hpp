// Private to the importers: paths of modules, which become the groups of nodes
// ("layers.0.self_attn").
#pragma once

#include <string>
#include <string_view>

namespace pw::fx {

/// Builds a group from the modules that enclose a call, which PyTorch records as nn_module_stack.
/// A module that is called again has the number of the call: "layers.0@1.norm".
class ModuleStack {
 public:
  /// Adds the next inner module. `key` ends with "@1" if this is its second call; `path` is
  /// "layers.0", or an expression of Dynamo such as "L['self'].layers[0]".
  void enter(std::string_view key, std::string_view path);
  [[nodiscard]] const std::string& group() const { return group_; }

 private:
  std::string group_, path_;
  std::string call_;  ///< number of the innermost module's call
};

/// Returns the group of a stack that Python printed: `{'1': ("L['self'].a", <class 'A'>), …}`.
std::string group_of_printed_stack(std::string_view text);
/// Returns the group of a stack in a PT2 archive: `L__self___a,a,torch.nn.A;…`.
std::string group_of_archived_stack(std::string_view text);
/// Returns the group of a node of ONNX: "layer1.0.conv1" for "/layer1/layer1.0/conv1/Conv".
std::string group_of_node_name(std::string_view name);
/// Returns the group of ONNX's metadata `pkg.torch.onnx.name_scopes`: `['', 'a', 'a.b', 'add_1']`,
/// whose last item is the node.
std::string group_of_name_scopes(std::string_view text);

}  // namespace pw::fx
