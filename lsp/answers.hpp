// Answers requests about documents, from their texts and the results of their checks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lsp/document_checks.hpp"
#include "lsp/protocol.hpp"
#include "lsp/view.hpp"

namespace pw::cli {

using Answer = tl::expected<std::string, RpcError>;
[[nodiscard]] tl::unexpected<RpcError> refusal(int code, std::string why);

class Answers {
 public:
  using Handler = Answer (Answers::*)(const Params&) const;

  Answers(const Workspace& workspace, const DocumentChecks& checks)
      : workspace_(workspace), checks_(checks) {}

  /// Returns the handler of a request; null if the method is not a request about documents.
  [[nodiscard]] static Handler handler(std::string_view method);

  bool snippets = false;  ///< the client can insert them

 private:
  [[nodiscard]] Answer hover_at(const Params& params) const;
  [[nodiscard]] Answer define(const Params& params) const;
  [[nodiscard]] Answer refer(const Params& params) const;
  [[nodiscard]] Answer highlight(const Params& params) const;
  [[nodiscard]] Answer document_symbols(const Params& params) const;
  [[nodiscard]] Answer workspace_symbols(const Params& params) const;
  [[nodiscard]] Answer complete_at(const Params& params) const;
  [[nodiscard]] Answer signature_at(const Params& params) const;
  [[nodiscard]] Answer format(const Params& params) const;
  [[nodiscard]] Answer prepare_rename(const Params& params) const;
  [[nodiscard]] Answer rename_at(const Params& params) const;
  [[nodiscard]] Answer tokens(const Params& params) const;
  [[nodiscard]] Answer hints(const Params& params) const;
  [[nodiscard]] Answer actions(const Params& params) const;
  [[nodiscard]] Answer lenses(const Params& params) const;
  [[nodiscard]] Answer execute(const Params& params) const;

  /// Returns the document and the known facts about it, or an error.
  [[nodiscard]] tl::expected<DocumentView, RpcError> view_of(const Params& params) const;
  struct Placed {
    DocumentView view;
    std::uint32_t offset = 0;
  };
  [[nodiscard]] tl::expected<Placed, RpcError> placed(const Params& params) const;
  [[nodiscard]] std::string verdict_text(const Params& params, const HoverText& at) const;

  const Workspace& workspace_;
  const DocumentChecks& checks_;
};

}  // namespace pw::cli
