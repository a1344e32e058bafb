#include <map>
#include <set>
#include <tuple>

#include "base/strings.hpp"
#include "base/try.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

constexpr std::size_t kMaxStatements = 4000000;  // after inlining
constexpr int kMaxModules = 32;                  // of submodules

std::string_view head(std::string_view path) { return path.substr(0, path.find('.')); }

// Higher-order ops that only run the submodule they are given: its place among their arguments, and
// that of the first argument of its own.
struct Wrapper {
  std::string_view name;
  std::size_t module, first;
};
constexpr Wrapper kWrappers[] = {
    {"torch.ops.higher_order.wrap_with_set_grad_enabled", 1, 2},
    {"torch.ops.higher_order.wrap_with_autocast", 4, 5},
    {"torch.ops.higher_order.invoke_subgraph", 0, 2},
    {"torch.ops.higher_order.wrap", 0, 1},
    {"torch.ops.higher_order.tag_activation_checkpoint", 0, 1},
};

class Inliner {
 public:
  explicit Inliner(Module& root) : root_(root) {}

  Result<Function> run() {
    out_.span = root_.forward.span;
    out_.parameters = root_.forward.parameters;
    for (const Parameter& p : out_.parameters) used_.insert(p.name);
    Scope scope{&root_, "", {}, {}, {}};
    Expr nothing;
    PW_TRY(expand(scope, nothing, 0));
    return std::move(out_);
  }

 private:
  struct Scope {
    const Module* module;
    std::string path;
    std::map<std::string, Expr, std::less<>> names;             // what its names are outside
    std::map<std::string, const Module*, std::less<>> modules;  // names of submodules
    std::set<std::string, std::less<>> own;                     // names that it gives itself
  };

  // The statements of a module; those of the root keep their `return`, another's goes to `result`.
  Status expand(Scope& scope, Expr& result, int depth) {
    const bool outermost = scope.path.empty();
    if (outermost) reserve(*scope.module);
    for (const Statement& s : scope.module->forward.statements) {
      if (names_module(s, scope)) continue;
      if (const Module* child = callee(s.value, scope)) {
        if (auto ok = call(s, *child, scope, depth); !ok) return ok;
        continue;
      }
      Statement copy = s;
      if (copy.group.empty()) copy.group = scope.path;
      rename(copy.value, scope);
      if (s.kind == Statement::Kind::return_ && !outermost) {
        result = std::move(copy.value);
        continue;
      }
      for (Expr& target : copy.targets) declare(target, scope);
      if (auto ok = put(std::move(copy)); !ok) return ok;
    }
    return {};
  }

  Status put(Statement s) {
    if (out_.statements.size() == kMaxStatements)
      return fail(s.span, "PW0503",
                  "the dump with its submodules has more than 4000000 statements");
    out_.statements.push_back(std::move(s));
    return {};
  }

  void reserve(const Module& module) {
    for (const Statement& s : module.forward.statements)
      for (const Expr& target : s.targets) reserve(target);
  }
  void reserve(const Expr& target) {
    if (target.kind == Expr::Kind::name) used_.insert(target.text);
    for (const Expr& part : target.args) reserve(part);
  }

  // `submod_1 = self.submod_1`, which is handed to a higher-order op further down.
  bool names_module(const Statement& s, Scope& scope) {
    if (s.kind != Statement::Kind::assign || s.targets.size() != 1 ||
        s.value.kind != Expr::Kind::name || s.targets[0].kind != Expr::Kind::name)
      return false;
    const Module* child = find(s.value.text, scope);
    if (child) scope.modules[s.targets[0].text] = child;
    return child != nullptr;
  }

  const Module* find(std::string_view text, const Scope& scope) const {
    if (auto it = scope.modules.find(text); it != scope.modules.end()) return it->second;
    constexpr std::string_view kSelf = "self.";
    if (!text.starts_with(kSelf)) return nullptr;
    text.remove_prefix(kSelf.size());
    for (const Module* parent : {scope.module, static_cast<const Module*>(&root_)})
      for (const Module& child : parent->children)
        if (child.name == text) return &child;
    return nullptr;
  }

  const Module* callee(const Expr& e, const Scope& scope) const {
    if (e.kind != Expr::Kind::call) return nullptr;
    for (const Wrapper& w : kWrappers)
      if (e.text == w.name && e.positional() > w.module &&
          e.args[w.module].kind == Expr::Kind::name)
        return find(e.args[w.module].text, scope);
    return find(e.text, scope);
  }

  static std::size_t first_argument(const Expr& e) {
    for (const Wrapper& w : kWrappers)
      if (e.text == w.name) return w.first;
    return 0;
  }

  Status call(const Statement& s, const Module& child, Scope& scope, int depth) {
    if (depth == kMaxModules) return fail(s.span, "PW0503", "submodules are nested deeper than 32");
    Scope inner{
        &child, scope.path.empty() ? child.name : scope.path + "." + child.name, {}, {}, {}};
    const std::vector<Parameter>& parameters = child.forward.parameters;
    const std::size_t first = std::min(first_argument(s.value), s.value.positional());
    const std::size_t given = s.value.positional() - first;
    if (given > parameters.size())
      return fail(s.value.span, "PW0504",
                  "`" + child.name + "` takes " + std::to_string(parameters.size()) +
                      " arguments, but gets " + std::to_string(given));
    for (std::size_t i = 0; i < s.value.args.size() - first; ++i) {
      Expr argument = s.value.args[first + i];
      rename(argument, scope);
      std::string name = i < given ? parameters[i].name : s.value.keywords[i - given];
      if (auto ok = bind(inner, name, std::move(argument), s); !ok) return ok;
    }
    Expr result;
    result.kind = Expr::Kind::none;
    if (auto ok = expand(inner, result, depth + 1); !ok) return ok;
    Statement out = s;
    out.value = std::move(result);
    if (out.group.empty()) out.group = scope.path;
    if (out.kind == Statement::Kind::expression) return {};
    if (out.kind == Statement::Kind::assign)
      for (Expr& target : out.targets) declare(target, scope);
    return put(std::move(out));
  }

  // Names and literals are used directly; other expressions are bound to a name first.
  Status bind(Scope& inner, const std::string& name, Expr argument, const Statement& s) {
    const bool plain = argument.kind != Expr::Kind::call && argument.kind != Expr::Kind::index &&
                       argument.kind != Expr::Kind::binary;
    if (plain) {
      inner.names[name] = std::move(argument);
      return {};
    }
    Statement early;
    early.span = s.span;
    early.source = s.source;
    early.value = std::move(argument);
    Expr target;
    target.kind = Expr::Kind::name;
    target.span = s.span;
    target.text = name;
    declare(target, inner);
    early.targets.push_back(std::move(target));
    return put(std::move(early));
  }

  // Returns a name that a statement binds, made unique in the output.
  void declare(Expr& target, Scope& scope) {
    if (target.kind != Expr::Kind::name) {
      for (Expr& part : target.args) declare(part, scope);
      return;
    }
    if (scope.path.empty()) return;
    auto known = scope.names.find(target.text);
    if (scope.own.insert(target.text).second) {
      Expr name = target;
      name.text = unique(target.text, scope.path);
      known = scope.names.insert_or_assign(target.text, std::move(name)).first;
    }
    target.text = known->second.text;
  }

  std::string unique(const std::string& name, const std::string& path) {
    if (used_.insert(name).second) return name;
    std::string base = path;
    for (char& c : base)
      if (c == '.') c = '_';
    base += "_" + name;
    std::string out = base;
    for (int n = 1; !used_.insert(out).second; ++n) out = base + "_" + std::to_string(n);
    return out;
  }

  // Resolves the names of a scope in an expression; `self.` of a submodule becomes a path from the
  // root.
  void rename(Expr& e, const Scope& scope) const {
    if (e.kind == Expr::Kind::name || e.kind == Expr::Kind::call) rename_path(e, scope);
    for (Expr& part : e.args) rename(part, scope);
  }
  void rename_path(Expr& e, const Scope& scope) const {
    if (const Module* module = e.kind == Expr::Kind::name ? find(e.text, scope) : nullptr) {
      e.kind = Expr::Kind::string;  // passed to an opaque op
      e.text = module->name;
      return;
    }
    if (scope.path.empty()) return;
    const std::string first(head(e.text));
    if (first == "self" && e.text.size() > 5) {
      e.text = "self." + scope.path + e.text.substr(4);
      return;
    }
    auto it = scope.names.find(first);
    if (first.empty() || it == scope.names.end()) return;
    if (e.text == first) {
      if (e.kind != Expr::Kind::name) return;
      const Span span = e.span;
      e = it->second;
      e.span = span;
    } else if (it->second.kind == Expr::Kind::name) {
      e.text = it->second.text + e.text.substr(first.size());
    } else if (e.kind == Expr::Kind::call) {  // a method of a value that is not a name
      e.args.insert(e.args.begin(), it->second);
      e.text = e.text.substr(first.size());
    }
  }

  Module& root_;
  Function out_;
  std::set<std::string, std::less<>> used_;  // names in the output
};

/// Collects the part before the first dot of names and calls.
void add_heads(const Expr& e, Strings& heads) {
  const bool names = e.kind == Expr::Kind::name || e.kind == Expr::Kind::call;
  if (const std::string_view first = names ? head(e.text) : ""; first.size() < e.text.size())
    heads.intern(first);
  for (const Expr& part : e.args) add_heads(part, heads);
}

/// Collects only the leading names.
void add_names(const Expr& target, const Strings& heads, Strings& names) {
  if (target.kind == Expr::Kind::name && heads.find(target.text).valid()) names.intern(target.text);
  for (const Expr& part : target.args) add_names(part, heads, names);
}

Expr name_of(std::string_view text, Span span) {
  Expr e;
  e.kind = Expr::Kind::name;
  e.span = span;
  e.text = std::string(text);
  return e;
}

// x.a.b: getattr(getattr(x, "a"), "b").
Expr attributes_of(std::string_view path, Span span) {
  std::size_t dot = path.find('.');
  Expr e = name_of(path.substr(0, dot), span);
  while (dot != std::string_view::npos) {
    const std::size_t next = path.find('.', dot + 1);
    Expr call, word;
    word.kind = Expr::Kind::string;
    word.span = span;
    word.text = std::string(path.substr(dot + 1, next - dot - 1));
    call.kind = Expr::Kind::call;
    call.span = span;
    call.text = "getattr";
    call.args.push_back(std::move(e));
    call.args.push_back(std::move(word));
    e = std::move(call);
    dot = next;
  }
  return e;
}

void spell_out(Expr& e, const Strings& locals) {
  for (Expr& part : e.args) spell_out(part, locals);
  if (e.kind == Expr::Kind::slice) {
    e.kind = Expr::Kind::call;
    e.text = "slice";
    return;
  }
  if (e.kind != Expr::Kind::name && e.kind != Expr::Kind::call) return;
  const std::string_view first = head(e.text);
  if (first.size() == e.text.size() || first.empty() || !locals.find(first).valid()) return;
  if (e.kind == Expr::Kind::name) {
    e = attributes_of(e.text, e.span);
    return;
  }
  const std::size_t last = e.text.rfind('.');
  Expr receiver = attributes_of(std::string_view(e.text).substr(0, last), e.span);
  e.args.insert(e.args.begin(), std::move(receiver));
  e.text = e.text.substr(last);
}

}  // namespace

namespace {

/// Counts names that a parameter of Dynamo's may have.
void count_names(const Expr& e, std::map<std::string, int, std::less<>>& counts) {
  const bool names = e.kind == Expr::Kind::name ||
                     (e.kind == Expr::Kind::call && e.text.find('.') != std::string::npos);
  if (names && e.text.starts_with("L_")) ++counts[std::string(head(e.text))];
  for (const Expr& part : e.args) count_names(part, counts);
}

// `l_x_ = L_x_`: the node is called l_x_, and only the argument of the call L_x_.
bool only_renames(const Statement& s) {
  return s.kind == Statement::Kind::assign && s.targets.size() == 1 && s.type.empty() &&
         s.targets[0].kind == Expr::Kind::name && s.value.kind == Expr::Kind::name &&
         s.value.text.starts_with("L_") && s.targets[0].text.starts_with("l_") &&
         std::string_view(s.value.text).substr(1) == std::string_view(s.targets[0].text).substr(1);
}

void take_node_names(Function& function) {
  std::map<std::string, int, std::less<>> counts;
  for (const Statement& s : function.statements) count_names(s.value, counts);
  std::map<std::string, std::string, std::less<>> names;
  std::erase_if(function.statements, [&](const Statement& s) {
    return only_renames(s) && counts[s.value.text] == 1 &&
           names.emplace(s.value.text, s.targets[0].text).second;
  });
  for (Parameter& p : function.parameters)
    if (auto it = names.find(p.name); it != names.end()) p.name = it->second;
}

}  // namespace

void flatten_inputs(Function& function) {
  take_node_names(function);
  std::map<std::string, std::pair<std::string, Span>, std::less<>> types;
  std::vector<Parameter> parameters;
  std::erase_if(function.statements, [&](const Statement& s) {
    if (s.kind == Statement::Kind::expression && !s.type.empty() &&
        s.value.kind == Expr::Kind::name) {
      types.emplace(s.value.text, std::pair(s.type, s.type_span));
      return true;
    }
    const bool flattens = s.kind == Statement::Kind::assign && s.targets.size() == 1 &&
                          s.value.kind == Expr::Kind::call &&
                          s.value.text.ends_with("tree_flatten_spec") && parameters.empty();
    if (!flattens) return false;
    const Expr& target = s.targets[0];
    if (target.kind == Expr::Kind::name) parameters.push_back({target.text, target.span, "", {}});
    for (const Expr& part : target.args) parameters.push_back({part.text, part.span, "", {}});
    return true;
  });
  for (Statement& s : function.statements)
    if (s.value.kind == Expr::Kind::call && s.value.text.ends_with("tree_unflatten") &&
        s.value.positional() > 0)
      s.value = Expr(std::move(s.value.args[0]));
  if (!parameters.empty()) function.parameters = std::move(parameters);
  for (Parameter& p : function.parameters)
    if (auto it = types.find(p.name); it != types.end() && p.type.empty())
      std::tie(p.type, p.type_span) = it->second;
}

void spell_out(Function& function) {
  Strings heads, locals;
  for (const Statement& s : function.statements) add_heads(s.value, heads);
  for (const Parameter& p : function.parameters)
    if (heads.find(p.name).valid()) locals.intern(p.name);
  for (Statement& s : function.statements) {
    spell_out(s.value, locals);
    for (const Expr& target : s.targets) add_names(target, heads, locals);
  }
}

Result<Function> inline_modules(Module module) {
  if (module.children.empty()) return std::move(module.forward);
  return Inliner(module).run();
}

}  // namespace pw::fx
