#include <algorithm>
#include <filesystem>

#include <pybind11/stl.h>

#include "base/try.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Returns the file of a place such as "model.json at /nodes/3"; empty if it is in no file.
std::string file_of(const Diagnostic& diagnostic) {
  const std::string file = diagnostic.place.substr(0, diagnostic.place.find(" at /"));
  std::error_code ignored;
  const bool unread = diagnostic.code.starts_with("PW00") || diagnostic.code == "PW0461";
  return unread || std::filesystem::is_regular_file(file, ignored) ? file : "";
}

ErrorItem item_of(const Diagnostic& diagnostic, const SourceMap& sources) {
  ErrorItem out;
  out.severity = diagnostic.severity == Severity::error     ? "error"
                 : diagnostic.severity == Severity::warning ? "warning"
                                                            : "note";
  out.code = diagnostic.code;
  out.message = diagnostic.message;
  out.hint = diagnostic.help;
  if (!diagnostic.span.valid()) {
    out.place = diagnostic.place;
    out.file = file_of(diagnostic);
    return out;
  }
  const LineColumn at = sources.position(diagnostic.span.source, diagnostic.span.begin);
  out.place = sources.describe(diagnostic.span);
  out.file = sources.name(diagnostic.span.source);
  out.line = at.line;
  out.column = at.column;
  return out;
}

py::object text_or_none(const std::string& text) {
  return text.empty() ? py::object(py::none()) : py::object(py::str(text));
}

py::object number_or_none(std::size_t number) {
  return number == 0 ? py::object(py::none()) : py::object(py::int_(number));
}

py::dict dict_of(const ErrorItem& item) {
  py::dict out;
  out["severity"] = item.severity;
  out["code"] = text_or_none(item.code);
  out["message"] = item.message;
  out["file"] = text_or_none(item.file);
  out["line"] = number_or_none(item.line);
  out["column"] = number_or_none(item.column);
  out["place"] = text_or_none(item.place);
  out["hint"] = text_or_none(item.hint);
  return out;
}

constexpr const char* kFields[] = {"code", "message", "file", "line", "column", "place", "hint"};

/// The exception describes the first error; notes and warnings may precede it.
const ErrorItem* first_error(const std::vector<ErrorItem>& items) {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [](const ErrorItem& item) { return item.severity == "error"; });
  if (found != items.end()) return &*found;
  return items.empty() ? nullptr : &items.front();
}

void raise_error(const py::object& type, const PiecewiseError& error) {
  py::object raised = type(py::str(error.what()));
  py::list all;
  for (const ErrorItem& item : error.items()) all.append(dict_of(item));
  raised.attr("diagnostics") = py::tuple(all);
  if (const ErrorItem* first = first_error(error.items())) {
    const py::dict fields = dict_of(*first);
    for (const char* field : kFields) raised.attr(field) = fields[field];
  }
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

PiecewiseError::PiecewiseError(const Diagnostics& diagnostics, const SourceMap& sources)
    : std::runtime_error(render(diagnostics, sources)) {
  for (const Diagnostic& diagnostic : diagnostics) items_.push_back(item_of(diagnostic, sources));
}

PiecewiseError mistake(std::string_view code, std::string message, std::string hint) {
  return {Diagnostics{error_at({}, code, std::move(message), std::move(hint))}, SourceMap()};
}

void add_error(py::module_& module) {
  static py::exception<PiecewiseError> type(module, "Error");
  type.attr("__doc__") =
      "An error in the input: `code` (PW0123), `message`, `file`, `line`, `column`, `place` and "
      "`hint` of the first diagnostic, None where it has none; `diagnostics`: all of them as "
      "dicts. The text is what the command line prints.";
  for (const char* field : kFields) type.attr(field) = py::none();
  type.attr("diagnostics") = py::tuple();
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const PiecewiseError& error) {
      raise_error(type, error);
    }
  });
}

Log log_to(const py::object& callable, const ContextPtr& context) {
  if (callable.is_none()) return {};
  Log log;
  log.say = [callable](const std::string& line) { callable(line); };
  log.warn = [callable, context](const Diagnostics& diagnostics) {
    if (!diagnostics.empty()) callable(render(diagnostics, context->sources));
  };
  return log;
}

LoadedRules loaded_rules(const PyRules& rules, const std::vector<std::string>& definitions,
                         const Log& log, const PyGraph* of, bool believe) {
  if (of != nullptr && of->context != rules.context)
    throw mistake("PW1412", "the graph and the rules belong to different sessions");
  RuleSource source;
  source.loaded = rules.set;
  source.definitions = definitions;
  return need(rules.context, load_rules(rules.context, source, log, believe));
}

py::object from_json(const std::string& text) {
  return py::module_::import("json").attr("loads")(text);
}

}  // namespace pw::python
