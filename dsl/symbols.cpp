#include "dsl/symbols.hpp"

#include <algorithm>

#include "graph/dtype.hpp"

namespace pw {
namespace {

std::optional<MentionAt> found(const SymbolTable::Names& names, std::string_view name) {
  const auto it = names.find(name);
  return it == names.end() ? std::nullopt : std::optional(it->second);
}

/// Returns the declared names of a scope, in order.
std::vector<MentionAt> declared_in(MentionAt of, NamePlace place) {
  std::vector<MentionAt> out;
  const std::vector<Mention>& all = of.text->mentions.all;
  for (std::uint32_t i = of.index + 1; i < all.size(); ++i) {
    const Mention& m = all[i];
    if (m.scope != of->scope) {
      if (m.begin >= of.text->mentions.scopes[of->scope].end) break;
      continue;
    }
    // Operands and attributes are in the head; names that a body binds follow its brace.
    if (m.kind == MentionKind::name && m.declares && m.place == place) out.push_back({of.text, i});
  }
  return out;
}

/// Returns the end of a declaration's `(…)`.
std::uint32_t end_of_operands(MentionAt callee) {
  const std::vector<Token>& tokens = callee.text->mentions.tokens;
  auto t = std::find_if(tokens.begin(), tokens.end(),
                        [&](const Token& token) { return token.begin >= callee->end; });
  std::size_t depth = 0;
  for (; t != tokens.end() && t->kind != Tok::end; ++t) {
    if (t->kind == Tok::lparen) ++depth;
    if (t->kind == Tok::rparen && --depth == 0) return t->begin;
    if (depth == 0) break;
  }
  return callee->end;
}

}  // namespace

SourceText::SourceText(std::string called, std::string content)
    : name(std::move(called)),
      text(std::move(content)),
      lines(text),
      mentions(find_mentions(text)) {}

std::vector<std::uint32_t> SourceText::at(std::uint32_t offset) const {
  std::vector<std::uint32_t> inside, before;
  const std::vector<Mention>& all = mentions.all;
  auto it = std::partition_point(all.begin(), all.end(),
                                 [&](const Mention& m) { return m.begin <= offset; });
  // Names do not nest, but a path and its parts, and a shorthand, share a place.
  for (int back = 0; it != all.begin() && back < 4; ++back) {
    --it;
    const auto index = static_cast<std::uint32_t>(it - all.begin());
    if (offset < it->end) inside.insert(inside.begin(), index);
    if (offset == it->end) before.insert(before.begin(), index);
  }
  return inside.empty() ? before : inside;
}

std::int32_t SourceText::item_at(std::uint32_t offset) const {
  std::int32_t out = -1;
  for (std::size_t i = 0; i < mentions.items.size(); ++i) {
    const OutlineItem& item = mentions.items[i];
    if (item.begin > offset) break;
    if (offset <= item.end) out = static_cast<std::int32_t>(i);
  }
  return out;
}

SymbolTable::SymbolTable(std::vector<const SourceText*> texts) : texts_(std::move(texts)) {
  for (const SourceText* text : texts_)
    for (std::uint32_t i = 0; i < text->mentions.all.size(); ++i) {
      const Mention& m = text->mentions.all[i];
      if (!m.declares || m.kind == MentionKind::name) continue;
      const MentionAt at{text, i};
      switch (m.kind) {
        case MentionKind::op:
        case MentionKind::pattern:
        case MentionKind::extern_: callees_.emplace(m.name, at); break;
        case MentionKind::rule:
          strategies_.emplace(m.of.empty() ? m.name : m.of + "." + m.name, at);
          break;
        case MentionKind::group:
        case MentionKind::pass:
        case MentionKind::pipeline: strategies_.emplace(m.name, at); break;
        case MentionKind::table: tables_.emplace(m.name, at); break;
        case MentionKind::param: params_.emplace(m.name, at); break;
        case MentionKind::row:
        case MentionKind::column:
        case MentionKind::split:
        case MentionKind::explore:
        case MentionKind::test:
        case MentionKind::foreign:
        case MentionKind::callee:
        case MentionKind::reference:
        case MentionKind::name:
        case MentionKind::attribute:
        case MentionKind::property:
        case MentionKind::trait:
        case MentionKind::kind: break;
      }
    }
}

std::vector<MentionAt> SymbolTable::attributes(MentionAt callee) {
  if (callee->scope == kNoScope) return {};
  return declared_in(callee, NamePlace::attribute);
}

std::vector<MentionAt> SymbolTable::operands(MentionAt callee) {
  if (callee->scope == kNoScope) return {};
  std::vector<MentionAt> out = declared_in(callee, NamePlace::value);
  const std::uint32_t end = end_of_operands(callee);
  std::erase_if(out, [&](MentionAt m) { return m->begin >= end; });
  return out;
}

std::vector<MentionAt> SymbolTable::members(MentionAt table, MentionKind kind) {
  std::vector<MentionAt> out;
  const std::vector<Mention>& all = table.text->mentions.all;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i].kind == kind && all[i].declares && all[i].of == table->name)
      out.push_back({table.text, i});
  return out;
}

std::optional<MentionAt> SymbolTable::member(std::string_view table, MentionKind kind,
                                             std::string_view name) const {
  const auto at = found(tables_, table);
  if (!at) return {};
  for (MentionAt m : members(*at, kind))
    if (m->name == name) return m;
  return {};
}

/// Returns the first place that binds the name in its scope, else its first place there.
std::optional<MentionAt> SymbolTable::local(MentionAt mention) const {
  if (mention->scope == kNoScope) return {};
  const std::vector<Mention>& all = mention.text->mentions.all;
  const NameScope& scope = mention.text->mentions.scopes[mention->scope];
  std::optional<MentionAt> first;
  auto it = std::partition_point(all.begin(), all.end(),
                                 [&](const Mention& m) { return m.begin < scope.begin; });
  for (; it != all.end() && it->begin < scope.end; ++it) {
    if (it->kind != MentionKind::name || it->scope != mention->scope || it->name != mention->name)
      continue;
    const MentionAt at{mention.text, static_cast<std::uint32_t>(it - all.begin())};
    if (it->declares) return at;
    if (!first) first = at;
  }
  return first;
}

std::optional<MentionAt> SymbolTable::declaration(MentionAt mention) const {
  const Mention& m = *mention;
  const auto in_scope = [&]() -> std::string_view {
    return m.scope == kNoScope ? std::string_view()
                               : std::string_view(mention.text->mentions.scopes[m.scope].table);
  };
  switch (m.kind) {
    case MentionKind::op:
    case MentionKind::pattern:
    case MentionKind::rule:
    case MentionKind::group:
    case MentionKind::pass:
    case MentionKind::pipeline:
    case MentionKind::split:
    case MentionKind::explore:
    case MentionKind::extern_:
    case MentionKind::test:
    case MentionKind::foreign:
    case MentionKind::column: return mention;
    case MentionKind::table: return m.declares ? mention : found(tables_, m.name);
    case MentionKind::param: return m.declares ? mention : found(params_, m.name);
    case MentionKind::row: {
      if (m.declares) return mention;
      const auto family = found(strategies_, m.of);
      if (!family || (*family)->scope == kNoScope) return {};
      return member(family->text->mentions.scopes[(*family)->scope].table, m.kind, m.name);
    }
    case MentionKind::callee: {
      if (auto at = found(callees_, m.name)) return at;
      if (dtype_named(m.name)) return {};
      return local(mention);
    }
    case MentionKind::reference: {
      if (auto at = found(strategies_, m.name)) return at;
      return found(params_, m.name);
    }
    case MentionKind::name: {
      if (dtype_named(m.name)) return {};
      auto at = local(mention);
      if (at && (*at)->declares) return at;
      if (auto param = found(params_, m.name)) return param;
      return at;
    }
    case MentionKind::attribute: {
      const auto callee = found(callees_, m.of);
      if (!callee) return {};
      for (MentionAt a : attributes(*callee))
        if (a->name == m.name) return a;
      return {};
    }
    case MentionKind::property:
      return in_scope().empty() ? std::nullopt : member(in_scope(), MentionKind::column, m.name);
    case MentionKind::trait:
    case MentionKind::kind: return {};
  }
  return {};
}

bool SymbolTable::may_mean(const Mention& mention, const Mention& declared) const {
  return mention.name == declared.name ||
         (mention.kind == MentionKind::reference && mention.name.ends_with("." + declared.name));
}

std::vector<MentionAt> SymbolTable::references(MentionAt declared) const {
  std::vector<MentionAt> out;
  for (const SourceText* text : texts_)
    for (std::uint32_t i = 0; i < text->mentions.all.size(); ++i) {
      const MentionAt at{text, i};
      if (may_mean(*at, *declared) && declaration(at) == declared) out.push_back(at);
    }
  return out;
}

}  // namespace pw
