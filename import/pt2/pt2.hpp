// PT2 archives: what torch.export.save writes since PyTorch 2.8. A zip of a folder with the program
// as JSON (models/NAME.json) and its tensors as plain bytes (data/weights, data/constants). The
// forms are those of PyTorch's torch/_export/serde/schema.py, version 8. Pickles are not read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/zip.hpp"
#include "graph/dtype.hpp"
#include "import/fx/ast.hpp"
#include "import/fx/fx.hpp"

namespace pw::pt2 {

struct Archive {
  Zip zip;
  std::string root;                 ///< the folder of everything, with its `/`
  std::vector<std::string> models;  ///< their names, in order
  [[nodiscard]] std::string program(std::string_view model) const;
};
/// `bytes` must outlive it. PW0530 for a zip that is no PT2 archive, is of another version, or
/// holds no program: older .pt2 files and AOTInductor's packages are called what they are.
Result<Archive> open_archive(std::string_view bytes, const std::string& file);
/// The archive's model of that number, from 1; 0: its only one. PW0504, PW0506.
Result<std::string> choose_model(const Archive& archive, std::size_t number);

/// What an input's contents are called in the archive.
struct StoredName {
  std::string name;
  bool constant = false;  ///< it is in data/constants, not in data/weights
};

/// A program as the importer takes it.
struct Program {
  fx::Module module;
  std::map<std::string, InputKind> kinds;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> ranges;  ///< of symbols
  std::vector<std::pair<std::string, std::string>> guards;  ///< sizes that must be equal
  std::map<std::string, StoredName> tensors;                ///< of inputs that are no user's
  std::string torch;                                        ///< the version that wrote it
  std::vector<std::string> notes;                           ///< what is left out, a line each
  /// The source that spans refer to: JSON pointers, a line each.
  SourceId places;
};
/// Reads models/NAME.json, which `place` names in messages; they end with a JSON pointer. Symbols
/// without an upper bound get `most`. PW0531: it has another form than the schema says.
/// PW0532: something that graphs do not have.
Result<Program> read_program(SourceMap& sources, std::string_view json, const std::string& place,
                             std::int64_t most);

/// The same as a graph. `options.file` is its file, `entry` the archive's part of it.
Result<FxImport> import_program(const ContextPtr& context, std::string_view json,
                                const std::string& entry, const FxOptions& options);

/// The bytes of an input's tensor: elements of an entry, which is the tensor's whole storage.
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
/// Where a model's parameters, buffers and constants are. Every element is inside of its entry, and
/// all of them together are at most 16 times the archive, and 64 MiB. PW0530, PW0531.
Result<Payloads> find_payloads(const Archive& archive, std::size_t number, std::uint64_t bytes);

}  // namespace pw::pt2
