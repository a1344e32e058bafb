#include "dsl/actions/declarations.hpp"

namespace pw {

void UseActions::end() {
  stacks_.items.emplace_back(ast::Use{stacks_.since(stacks_.close()), cursor_.string()});
}

void ParamActions::kind() {
  param_ = {};
  param_.kind = cursor_.word();
}
void ParamActions::value() { param_.value = stacks_.pop_expression(); }
void ParamActions::end() {
  param_.span = stacks_.since(stacks_.close());
  param_.name = pop(stacks_.names).text;
  stacks_.items.emplace_back(std::move(param_));
}

void ExternActions::predicate() { extern_.predicate = true; }
void ExternActions::parameter_name() { extern_.parameters.emplace_back(cursor_.word(), ""); }
void ExternActions::parameter() {
  if (cursor_.before_last().kind == Tok::colon)
    extern_.parameters.back().second = cursor_.word();
  else
    extern_.parameters.emplace_back("", cursor_.word());
}
void ExternActions::result() { extern_.result = cursor_.word(); }
void ExternActions::end() {
  extern_.span = stacks_.since(stacks_.close());
  extern_.name = pop(stacks_.names).text;
  stacks_.items.emplace_back(std::move(extern_));
}

void TableActions::columns() {
  table_ = {};
  const std::size_t mark = stacks_.mark().names;
  table_.name = stacks_.names[mark].text;
  table_.name_span = stacks_.names[mark].span;
  table_.columns = stacks_.take_words(mark + 1);
}
void TableActions::product() {
  table_ = {};
  table_.name_span = stacks_.names.back().span;
  table_.name = pop(stacks_.names).text;
}
void TableActions::factor() {
  ValueStacks::Named n = pop(stacks_.names);
  table_.factors.emplace_back(std::move(n.text), n.span);
}
void TableActions::row() {
  stacks_.open();
  table_.rows.push_back({{}, cursor_.word(), {}});
}
void TableActions::end_row() {
  const ValueStacks::Mark m = stacks_.close();
  table_.rows.back().span = stacks_.since(m);
  table_.rows.back().cells = take(stacks_.expressions, m.expressions);
}
void TableActions::end() {
  table_.span = stacks_.since(stacks_.close());
  stacks_.items.emplace_back(std::move(table_));
}

}  // namespace pw
