// Joins products that follow one another into one kernel. Arguments of the kernel are what the
// products read, then what they write; a value that one passes to another is one argument.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "cuda/joined_products.hpp"

namespace pw::cuda {
namespace {

class ProductChain {
 public:
  ProductChain(const std::vector<JoinedProduct>& products,
               const std::function<ValueId(ValueId)>& root, Context& context)
      : products_(products), root_(root), context_(context) {}

  std::optional<JoinedProduct> run(std::string_view arch) {
    for (const JoinedProduct& product : products_) {
      out_.fills_pages = out_.fills_pages || product.fills_pages;
      add(product);
    }
    StreamedChain chain;
    chain.arguments = read_types_;
    const auto append = [&](const std::vector<TypeId>& types) {
      chain.arguments.insert(chain.arguments.end(), types.begin(), types.end());
    };
    append(slot_types_);
    append(written_types_);
    chain.state = chain.arguments.size();
    chain.arguments.push_back(StreamedChain::state_type(products_.size(), context_));
    append(page_types_);
    chain.results = written_types_.size() + 1 + page_types_.size();
    chain.passed.resize(chain.arguments.size());
    for (std::size_t i = 0; i < passed_.size(); ++i)
      chain.passed[number({Part::write, i})] = passed_[i];
    for (std::size_t i = 0; i < products_.size(); ++i)
      chain.products.push_back(numbered(products_[i].streamed, arguments_[i]));
    auto kernel = streamed_chain(chain, arch, context_);
    if (!kernel) return std::nullopt;
    out_.kernel = std::move(*kernel);
    out_.kernel.first_reads = products_.front().reads.size();
    return std::move(out_);
  }

 private:
  enum class Part : std::uint8_t { read, slots, write, pages };
  struct Argument {
    Part part = Part::read;
    std::size_t index = 0;
  };

  /// Finds the chain's arguments of a product.
  void add(const JoinedProduct& product) {
    const std::vector<TypeId>& types = product.streamed.arguments;
    std::vector<Argument>& own = arguments_.emplace_back();
    for (ValueId v : product.reads) {
      const TypeId type = types[own.size()];
      const auto at = std::find(out_.writes.begin(), out_.writes.end(), root_(v));
      if (at == out_.writes.end()) {
        own.push_back({Part::read, read_types_.size()});
        read_types_.push_back(type);
        out_.reads.push_back(v);
        continue;
      }
      own.push_back({Part::write, static_cast<std::size_t>(at - out_.writes.begin())});
      passed_[own.back().index] = 1;
    }
    if (product.fills_pages) {
      slot_types_.push_back(types[own.size()]);
      own.push_back({Part::slots, 0});
    }
    for (ValueId v : product.writes) {
      const TypeId type = types[own.size()];
      own.push_back({Part::write, written_types_.size()});
      written_types_.push_back(type);
      passed_.push_back(0);
      out_.writes.push_back(root_(v));
    }
    while (own.size() < types.size()) {
      page_types_.push_back(types[own.size()]);
      own.push_back({Part::pages, page_types_.size() - 1});
    }
  }

  [[nodiscard]] std::size_t number(const Argument& argument) const {
    const std::size_t writes = read_types_.size() + slot_types_.size();
    switch (argument.part) {
      case Part::read: return argument.index;
      case Part::slots: return read_types_.size();
      case Part::write: return writes + argument.index;
      case Part::pages: return writes + written_types_.size() + 1 + argument.index;
    }
    return 0;
  }

  [[nodiscard]] StreamedProduct numbered(StreamedProduct product,
                                         const std::vector<Argument>& own) const {
    const auto change = [&](std::size_t& argument) { argument = number(own[argument]); };
    for (std::size_t& operand : product.operands) change(operand);
    change(product.result);
    for (auto* joined : {&product.before, &product.after})
      if (*joined)
        for (std::size_t& argument : (*joined)->arguments) change(argument);
    if (product.paged) {
      change(product.paged->slots);
      for (RowsInPages::Result& result : product.paged->results) change(result.pages);
    }
    return product;
  }

  const std::vector<JoinedProduct>& products_;
  const std::function<ValueId(ValueId)>& root_;
  Context& context_;
  JoinedProduct out_;
  std::vector<std::vector<Argument>> arguments_;  ///< by product
  std::vector<TypeId> read_types_, slot_types_, written_types_, page_types_;
  std::vector<char> passed_;  ///< by written value
};

}  // namespace

bool ProductChainer::reads_as_written(const JoinedProduct& product) const {
  const auto dtype = [&](const StreamedProduct& streamed, std::size_t argument) {
    return context_.types[streamed.arguments[argument]].dtype;
  };
  for (const JoinedProduct& before : products_) {
    const std::size_t first = before.streamed.arguments.size() - before.streamed.results;
    for (std::size_t i = 0; i < product.reads.size(); ++i)
      for (std::size_t w = 0; w < before.writes.size(); ++w)
        if (root_(product.reads[i]) == root_(before.writes[w]) &&
            dtype(product.streamed, i) != dtype(before.streamed, first + w))
          return false;
  }
  return true;
}

bool ProductChainer::joins(const JoinedProduct& product) const {
  const bool matches =
      std::all_of(products_.begin(), products_.end(), [&](const JoinedProduct& other) {
        const bool staged = product.streamed.before && other.streamed.before;
        return other.streamed.product.rows == product.streamed.product.rows &&
               (!staged || other.kernel.threads == product.kernel.threads) &&
               !(other.fills_pages && product.fills_pages);
      });
  return matches && reads_as_written(product);
}

std::optional<JoinedProduct> ProductChainer::add(JoinedProduct product) {
  std::optional<JoinedProduct> done;
  if (!joins(product)) done = end();
  products_.push_back(std::move(product));
  return done;
}

std::optional<JoinedProduct> ProductChainer::end() {
  if (products_.empty()) return std::nullopt;
  if (products_.size() > 1) {
    auto all = ProductChain(products_, root_, context_).run(arch_);
    PW_ASSERT(all, "products that join have a kernel");
    products_.clear();
    return all;
  }
  JoinedProduct out = std::move(products_.front());
  products_.clear();
  return out;
}

}  // namespace pw::cuda
