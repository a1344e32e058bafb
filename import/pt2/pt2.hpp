// PT2 archives: the output of torch.export.save since PyTorch 2.8. A zip of a folder with the
// program as JSON (models/NAME.json) and its tensors as plain bytes (data/weights, data/constants).
// The forms are those of PyTorch's torch/_export/serde/schema.py, version 8. Pickles are not read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/zip.hpp"
#include "graph/dtype.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::pt2 {

struct Archive {
  Zip zip;
  std::string root;                 ///< the folder of everything, with its `/`
  std::vector<std::string> models;  ///< their names, in order
  [[nodiscard]] std::string program(std::string_view model) const;
};
/// Opens an archive. `bytes` must outlive it. PW0530 for a zip that is not a PT2 archive, has
/// another version, or holds no program; messages name older .pt2 files and AOTInductor's packages
/// as such.
Result<Archive> open_archive(std::string_view bytes, const std::string& file);
/// Returns the archive's model of that number, from 1; 0: its only one. PW0504, PW0506.
Result<std::string> choose_model(const Archive& archive, std::size_t number);

/// Name of an input's contents in the archive.
struct StoredName {
  std::string name;
  bool constant = false;  ///< it is in data/constants, not in data/weights
};

/// A program in the importer's form.
struct Program {
  fx::Module module;
  std::map<std::string, InputKind> kinds;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> ranges;  ///< of symbols
  std::vector<FxGuard> guards;                                          ///< conditions on sizes
  std::map<std::string, StoredName> tensors;  ///< of inputs that the user does not supply
  std::string torch;                          ///< the version that wrote it
  std::vector<std::string> notes;             ///< what is omitted, a line each
  /// Source that spans refer to: JSON pointers, a line each.
  SourceId places;
};
/// Reads models/NAME.json, which `place` names in messages; they end with a JSON pointer. Symbols
/// without an upper bound get `most`. PW0531: its form differs from the schema. PW0532: a feature
/// that graphs lack.
Result<Program> read_program(SourceMap& sources, std::string_view json, const std::string& place,
                             std::int64_t most);

/// Imports a program as a graph. `options.file` is its file, `entry` the archive's part of it.
Result<FxImport> import_program(const ContextPtr& context, std::string_view json,
                                const std::string& entry, const FxOptions& options);

/// Bytes of an input's tensor: elements of an entry, which is the tensor's whole storage.
struct Payload {
  std::string input;
  std::string entry;  ///< in the archive
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents, strides;  ///< in elements, none of them negative
  std::int64_t offset = 0;                     ///< of the first element
};
struct Payloads {
  std::vector<Payload> read;         ///< in the order of the inputs' names
  std::vector<std::string> refused;  ///< "w: it is pickled", of other inputs
};
/// Locates a model's parameters, buffers and constants. Every element is inside its entry, and all
/// of them together are at most 16 times the archive, and 64 MiB. PW0530, PW0531.
Result<Payloads> find_payloads(const Archive& archive, std::size_t number, std::uint64_t bytes);

}  // namespace pw::pt2
