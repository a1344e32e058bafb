#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/io/own_folders.hpp"
#include "base/try.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/check/check.hpp"
#include "dsl/embedded_rules.hpp"
#include "dsl/graph_formats.hpp"
#include "dsl/library_conflicts.hpp"
#include "dsl/syntax/draft.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/used_file.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryOps = "<library>/ops";
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// Returns the first place where `use "path"` in a file of this name is searched.
std::string sibling_path(const std::string& user, const std::string& path) {
  return (fs::path(user).parent_path() / path).lexically_normal().generic_string();
}

/// Returns a folder's .pwr files, sorted, and nothing else.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".pwr") paths.push_back(it->path().generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Describes a text that is not a rule file; empty if it may be one.
std::string instead_of_rules(std::string_view text) {
  if (const std::string format = stated_format(text); !format.empty())
    return "a JSON document of the format " + format;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '['))
    return "a JSON document";
  for (const GraphFormat& format : graph_formats())
    if (!format.mistaken.empty() && format.recognise(text)) return std::string(format.mistaken);
  return known_as(text);
}

bool is_a_graph(const ast::File& file) {
  return file.items.size() == 1 && std::holds_alternative<ast::GraphItem>(file.items.front());
}

class Loader {
 public:
  /// Creates a loader. `draft`: parsed parts of a broken file count.
  Loader(const ContextPtr& context, const LoadOptions& options, bool draft = false)
      : context_(context), unsaved_(options.unsaved), draft_(draft) {}

  /// Registers named files before any is read: the order of naming changes nothing.
  void add_own(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error))
      own_.add(path);
    else
      own_.add_file(path);
  }

  void root(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const std::vector<std::string> paths = files_in(path);
      if (paths.empty()) out_.push_back(error_in(path, "PW0460", "this folder has no .pwr file"));
      for (const std::string& file : paths) disk(file, true);
    } else if (path == "-" || unsaved(path) != nullptr || fs::exists(path, error)) {
      disk(path, true);
    } else if (const EmbeddedFile* file = embedded_file(path)) {
      library(*file, true);
    } else {
      out_.push_back(error_in(path, "PW0461",
                              "no such file, and no rule file of the library has this name",
                              did_you_mean(path, library_names())));
    }
  }

  void text(const std::string& name, std::string text, bool root) {
    parse(name, name, std::move(text), root);
  }

  void library(const EmbeddedFile& file, bool root) {
    const std::string name = std::string(kLibrary) + std::string(file.path);
    parse(name, name, std::string(file.text), root);
  }

  Result<RuleSet> finish(OpBodies bodies = OpBodies::checked) {
    if (has_errors(out_)) return tl::unexpected<Diagnostics>(std::move(out_));
    resolve_library_conflicts(*context_, files_, all_uses(), out_);
    if (has_errors(out_)) return tl::unexpected<Diagnostics>(std::move(out_));
    auto rules = check_files(context_, std::move(files_), roots_, bodies);
    Diagnostics& found = rules ? rules->warnings : rules.error();
    found.insert(found.begin(), out_.begin(), out_.end());
    return rules;
  }
  /// Returns the draft. Errors of a text that does not parse hide its other errors, as in finish().
  Draft finish_draft() {
    Draft draft;
    Diagnostics found;
    resolve_library_conflicts(*context_, files_, all_uses(), found);
    draft.rules = check_files(context_, std::move(files_), roots_, found, &draft.types);
    for (std::size_t i = 0; i < roots_.size(); ++i)
      if (roots_[i]) infer_graph_types(context_, draft.rules.files[i], draft.types);
    draft.diagnostics = has_errors(out_) ? std::move(out_) : std::move(found);
    return draft;
  }

 private:
  [[nodiscard]] const std::string* unsaved(const std::string& path) const {
    if (unsaved_ == nullptr) return nullptr;
    const auto it = unsaved_->find(real_path(path).generic_string());
    return it == unsaved_->end() ? nullptr : &it->second;
  }
  void disk(const std::string& path, bool root, Span used = {}) {
    const std::string key = real_path(path).generic_string();
    if (keys_.contains(key)) return;
    if (const std::string* written = unsaved(path)) return parse(key, path, *written, root, used);
    auto text = read_file(path, kMostBytes);
    if (!text) {
      append(out_, std::move(text.error()));
      return;
    }
    parse(key, path, std::move(*text), root, used);
  }

  void parse(const std::string& key, const std::string& name, std::string text, bool root,
             Span used = {}) {
    if (!keys_.insert(key).second) return;
    const SourceId source = context_->sources.add(name, std::move(text));
    auto [file, wrong] = recover_file(context_->sources, source);
    if (root && !has_errors(wrong) && is_a_graph(file)) {
      out_.push_back(error_in(name, "PW0464", "this is a graph",
                              "rules are .pwr files; pass a graph without -r"));
      return;
    }
    if (has_errors(wrong)) {
      const std::string kind = root ? instead_of_rules(context_->sources.text(source)) : "";
      const bool foreign = used.valid() && !own_.hold(name);
      if (foreign)
        out_.push_back(not_quoted(name, used));
      else if (!kind.empty())
        out_.push_back(error_in(name, "PW0464", "this is " + kind, "rules are .pwr files"));
      else
        append(out_, std::move(wrong));
      if (foreign || !draft_) return;
    }
    for (const ast::Item& item : file.items) {
      if (const auto* use = std::get_if<ast::Use>(&item)) follow(key, name, *use);
    }
    files_.push_back(std::move(file));
    roots_.push_back(root);
    loaded_.push_back(key);
  }

  /// Returns the files that each file uses, directly or indirectly.
  [[nodiscard]] std::vector<std::set<std::size_t>> all_uses() const {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < loaded_.size(); ++i) numbers.emplace(loaded_[i], i);
    std::vector<std::set<std::size_t>> out(loaded_.size());
    for (std::size_t i = 0; i < loaded_.size(); ++i) {
      std::vector<std::string> open{loaded_[i]};
      while (!open.empty()) {
        const auto [first, last] = uses_.equal_range(open.back());
        open.pop_back();
        for (auto use = first; use != last; ++use)
          if (const auto found = numbers.find(use->second);
              found != numbers.end() && found->second != i && out[i].insert(found->second).second)
            open.push_back(use->second);
      }
    }
    return out;
  }

  static Diagnostic not_quoted(const std::string& name, Span used) {
    return error_at(used, "PW0463", in_ticks(name) + " is not a valid rule file",
                    "it is outside the folders of the named rule files, so its contents are not "
                    "shown; `pwr check " +
                        name + "` shows what is wrong in it");
  }

  void follow(const std::string& key, const std::string& user, const ast::Use& use) {
    const UsedFile found = find_used(user, use.path);
    if (found.embedded != nullptr) return library(*found.embedded, false);
    if (!found.path.empty()) {
      uses_.emplace(key, real_path(found.path).generic_string());
      return disk(found.path, false, use.span);
    }
    out_.push_back(
        error_at(use.span, "PW0462",
                 "there is no " + in_ticks(use.path) + " next to this file or in the library",
                 did_you_mean(use.path, library_names())));
  }

  ContextPtr context_;
  const std::map<std::string, std::string>* unsaved_;
  bool draft_;
  OwnFolders own_;
  std::set<std::string> keys_;
  std::vector<std::string> loaded_;               ///< the keys of files_
  std::multimap<std::string, std::string> uses_;  ///< by key; the library's files are not listed
  std::vector<ast::File> files_;
  std::vector<bool> roots_;
  Diagnostics out_;
};

bool library_loaded(const Context& context, std::string_view name) {
  for (std::size_t i = 0; i < context.sources.size(); ++i) {
    if (context.sources.name(SourceId(i)) == name) return true;
  }
  return false;
}

template <class AddRoots>
Result<RuleSet> load(const ContextPtr& context, LoadOptions options, AddRoots add_roots) {
  if (options.library) {
    PW_TRY(load_op_library(context));
  }
  Loader loader(context, options);
  add_roots(loader);
  return loader.finish();
}

}  // namespace

const EmbeddedFile* embedded_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_rules()) {
    if (file.path == path || file.path == std::string(path) + ".pwr") return &file;
  }
  return nullptr;
}

std::vector<std::string> library_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_rules()) {
    names.emplace_back(file.path);
    if (file.path.ends_with(".pwr")) names.emplace_back(file.path.substr(0, file.path.size() - 4));
  }
  return names;
}

UsedFile find_used(const std::string& user, const std::string& path) {
  if (user.starts_with(kNoFile)) return {"", embedded_file(path)};
  const std::string near = sibling_path(user, path);
  std::error_code error;
  if (near.starts_with(kLibrary)) {
    if (const EmbeddedFile* file = embedded_file(near.substr(kLibrary.size()))) return {"", file};
  } else if (fs::is_regular_file(near, error)) {
    return {near, nullptr};
  }
  return {"", embedded_file(path)};
}

Result<RuleSet> load_rules(const ContextPtr& context, const std::vector<std::string>& paths,
                           LoadOptions options) {
  return load(context, options, [&](Loader& loader) {
    for (const std::string& path : paths) loader.add_own(path);
    for (const std::string& path : paths) loader.root(path);
  });
}

Result<RuleSet> load_rule_texts(const ContextPtr& context,
                                const std::vector<std::pair<std::string, std::string>>& texts,
                                LoadOptions options) {
  return load(context, options, [&](Loader& loader) {
    for (const auto& [name, text] : texts) loader.add_own(name);
    for (const auto& [name, text] : texts) loader.text(name, text, true);
  });
}

Draft load_draft(const ContextPtr& context, const std::vector<std::string>& paths,
                 LoadOptions options) {
  if (options.library) {
    if (auto loaded = load_op_library(context); !loaded) return {{}, std::move(loaded.error()), {}};
  }
  Loader loader(context, options, true);
  for (const std::string& path : paths) loader.add_own(path);
  for (const std::string& path : paths) loader.root(path);
  return loader.finish_draft();
}

namespace {

Status read_op_library(const ContextPtr& context, OpBodies bodies) {
  context->sources.add(std::string(kLibraryOps), "");
  Loader loader(context, {});
  for (const EmbeddedFile& file : embedded_rules()) {
    if (file.path.starts_with("ops/")) loader.library(file, false);
  }
  for (const EmbeddedFile& file : embedded_rules()) {
    if (file.path.starts_with("import/")) loader.library(file, false);
  }
  PW_TRY(loader.finish(bodies));
  return {};
}

/// Returns a context with the library alone, read once a process; null if that fails.
ContextPtr op_library() {
  static const ContextPtr one = [] {
    auto context = std::make_shared<Context>();
    return read_op_library(context, OpBodies::sound) ? context : nullptr;
  }();
  return one;
}

}  // namespace

// The bodies of the library's ops are checked by a test, and not again whenever a program starts.
Status load_op_library(const ContextPtr& context) {
  if (library_loaded(*context, kLibraryOps)) return {};
  if (const ContextPtr one = op_library(); one && fork_into(*context, *one)) return {};
  return read_op_library(context, OpBodies::sound);
}

Status check_op_library() {
  return read_op_library(std::make_shared<Context>(), OpBodies::checked);
}

}  // namespace pw
