#include "pipeline/run/save_weights.hpp"

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "dsl/graph_formats.hpp"

namespace pw {

Status save_weights(const GraphSource& source, const std::string& path) {
  const std::string bytes = PW_TRY(read_file(source.path));
  if (const GraphFormat* format = format_with_tensors(bytes))
    return write_file(path, PW_TRY(format->tensors(bytes, source.path, source.number)));
  return fail(error_in(source.path, "PW1274", "this file contains no weights",
                       "use a .pt2 of torch.export.save, which contains weights"));
}

}  // namespace pw
