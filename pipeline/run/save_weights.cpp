#include "pipeline/run/save_weights.hpp"

#include "base/io/file.hpp"
#include "base/io/zip.hpp"
#include "base/try.hpp"
#include "tensor/pt2_tensors.hpp"

namespace pw {

Status save_weights(const GraphSource& source, const std::string& path) {
  const std::string bytes = PW_TRY(read_file(source.path));
  if (!looks_like_zip(bytes))
    return fail(error_in(source.path, "PW1274", "there are no weights in this file",
                         "a .pt2 of torch.export.save holds weights"));
  return write_file(path, PW_TRY(safetensors_of_pt2(bytes, source.path, source.number)));
}

}  // namespace pw
