// All SQL is in this file.
#include "studies/study_store.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/dynamic_library.hpp"
#include "base/try.hpp"
#include "dsl/objectives.hpp"
#include "studies/study_lists.hpp"

#if PW_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace pw {

#if PW_HAVE_SQLITE

namespace {

// clang-format off: a table
#define PW_SQLITE_FUNCTIONS(X)                                                                    \
  X(bind_double) X(bind_int64) X(bind_null) X(bind_text) X(busy_timeout) X(close_v2)              \
  X(column_count) X(column_double) X(column_int64) X(column_name) X(column_text) X(column_type)   \
  X(errmsg) X(exec) X(extended_result_codes) X(finalize) X(open_v2) X(prepare_v2) X(reset)        \
  X(step)
// clang-format on

/// The functions of SQLite's library, which is loaded on first use.
struct Sqlite {
#define PW_POINTER(name) decltype(&::sqlite3_##name) name = nullptr;
  PW_SQLITE_FUNCTIONS(PW_POINTER)
#undef PW_POINTER
  std::string problem;  ///< reason why SQLite is unavailable; empty if available

  Sqlite();
};

Sqlite::Sqlite() {
  void* const library = load_library({"libsqlite3.so.0"}, problem);
  if (library == nullptr) return;
  FunctionFinder find(library);
#define PW_FIND(name) find(name, "sqlite3_" #name);
  PW_SQLITE_FUNCTIONS(PW_FIND)
#undef PW_FIND
  problem = find.problem();
}

const Sqlite& sqlite() {
  static const Sqlite loaded;
  return loaded;
}

constexpr const char* kFormat = "piecewise.study/1";
constexpr int kWaitMs = 60'000;  ///< wait for another process that writes the same file
constexpr std::size_t kCounted = 3, kMeasured = kObjectiveNames.size() - kCounted;

constexpr const char* kSchema = R"(
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE blocks (
  block TEXT PRIMARY KEY, graph TEXT NOT NULL, setting TEXT NOT NULL, rules TEXT NOT NULL,
  space TEXT NOT NULL, passes TEXT NOT NULL, objectives TEXT NOT NULL, orders INTEGER NOT NULL,
  units INTEGER NOT NULL, start TEXT NOT NULL, written TEXT NOT NULL, thefts INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE units (
  block TEXT NOT NULL, unit INTEGER NOT NULL, "order" TEXT NOT NULL, state TEXT NOT NULL,
  PRIMARY KEY (block, unit)
) WITHOUT ROWID;
CREATE TABLE states (
  block TEXT NOT NULL, state TEXT NOT NULL, nodes INTEGER NOT NULL, ops INTEGER NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (block, state)
) WITHOUT ROWID;
CREATE TABLE steps (
  block TEXT NOT NULL, state TEXT NOT NULL, pass TEXT NOT NULL, next TEXT NOT NULL,
  rewrites INTEGER NOT NULL, PRIMARY KEY (block, state, pass)
) WITHOUT ROWID;
CREATE TABLE ends (
  block TEXT NOT NULL, state TEXT NOT NULL, launches INTEGER, peak_bytes INTEGER,
  modelled_us REAL, measured_us REAL, compile_ms REAL, PRIMARY KEY (block, state)
) WITHOUT ROWID;
CREATE TABLE thefts (
  block TEXT NOT NULL, thief_pass TEXT NOT NULL, thief TEXT NOT NULL, victim_pass TEXT NOT NULL,
  victim TEXT NOT NULL, lost INTEGER NOT NULL, node TEXT NOT NULL, losing TEXT NOT NULL,
  keeping TEXT NOT NULL, PRIMARY KEY (block, thief_pass, thief, victim_pass, victim)
) WITHOUT ROWID;
CREATE VIEW results AS
  SELECT b.block, b.graph, b.setting, u.unit, u."order", u.state, s.nodes, s.ops, s.bytes,
         e.launches, e.peak_bytes, e.modelled_us, e.measured_us, e.compile_ms,
         u.state = b.written AS written
  FROM units u JOIN blocks b USING (block)
  JOIN states s ON s.block = u.block AND s.state = u.state
  LEFT JOIN ends e ON e.block = u.block AND e.state = u.state;
)";
constexpr const char* kTables[] = {"blocks", "units", "states", "steps", "ends", "thefts"};

}  // namespace

std::string study_problem() { return sqlite().problem; }

struct StudyStore::Database {
  explicit Database(std::string file) : path(std::move(file)) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite().close_v2(handle); }

  std::string path;
  sqlite3* handle = nullptr;

  [[nodiscard]] tl::unexpected<Diagnostics> failed() const {
    const std::string why = handle == nullptr ? "no memory" : sqlite().errmsg(handle);
    return fail(error_in(path, "PW1460", "the file cannot be used as a study: " + why,
                         "a study is a SQLite file that `pwr explore --study` made"));
  }
  Status run(const std::string& sql) {
    if (sqlite().exec(handle, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
    return {};
  }
};

namespace {

/// A prepared statement; values are bound in their order, and rows are read by column.
class Query {
 public:
  Query(sqlite3* database, const std::string& sql) : database_(database) {
    good_ = sqlite().prepare_v2(database, sql.c_str(), -1, &handle_, nullptr) == SQLITE_OK;
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() { sqlite().finalize(handle_); }

  Query& bind(const std::string& text) {
    keep(sqlite().bind_text(handle_, ++bound_, text.data(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT));
    return *this;
  }
  Query& bind(std::int64_t number) {
    keep(sqlite().bind_int64(handle_, ++bound_, number));
    return *this;
  }
  Query& bind(std::uint64_t number) { return bind(static_cast<std::int64_t>(number)); }
  Query& bind(const std::optional<double>& number, bool whole) {
    if (!number) {
      keep(sqlite().bind_null(handle_, ++bound_));
      return *this;
    }
    if (whole) return bind(static_cast<std::int64_t>(*number));
    keep(sqlite().bind_double(handle_, ++bound_, *number));
    return *this;
  }
  /// Returns true if there is a row; false at the end, and after a failure.
  bool next() {
    if (!good_) return false;
    const int code = sqlite().step(handle_);
    good_ = code == SQLITE_ROW || code == SQLITE_DONE;
    return code == SQLITE_ROW;
  }
  /// Runs it and resets it for new bindings.
  bool run() {
    while (next()) {
    }
    sqlite().reset(handle_);
    bound_ = 0;
    return good_;
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::string text(int column) const {
    const auto* bytes = sqlite().column_text(handle_, column);
    return bytes == nullptr ? std::string() : reinterpret_cast<const char*>(bytes);
  }
  [[nodiscard]] std::int64_t number(int column) const {
    return sqlite().column_int64(handle_, column);
  }
  [[nodiscard]] std::optional<double> real(int column) const {
    if (sqlite().column_type(handle_, column) == SQLITE_NULL) return {};
    return sqlite().column_double(handle_, column);
  }
  [[nodiscard]] int columns() const { return sqlite().column_count(handle_); }
  [[nodiscard]] std::string name(int column) const { return sqlite().column_name(handle_, column); }

 private:
  void keep(int code) { good_ = good_ && code == SQLITE_OK; }
  sqlite3* database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
  bool good_ = false;
};

bool write_rows(sqlite3* database, const std::string& block, const StudyRows& rows) {
  bool good = true;
  Query unit(database, R"(INSERT INTO units VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING)");
  for (const StudyUnit& each : rows.units)
    good = good &&
           unit.bind(block).bind(each.number).bind(text_of_list(each.order)).bind(each.end).run();
  Query state(database, R"(INSERT INTO states VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING)");
  for (const StudyState& each : rows.states) {
    state.bind(block).bind(each.state);
    for (const std::int64_t cost : each.costs) state.bind(cost);
    good = good && state.run();
  }
  Query step(database, R"(INSERT INTO steps VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING)");
  for (const StudyStep& each : rows.steps)
    good = good && step.bind(block)
                       .bind(each.state)
                       .bind(each.pass)
                       .bind(each.next)
                       .bind(static_cast<std::int64_t>(each.rewrites))
                       .run();
  Query end(database, R"(INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING)");
  for (const StudyEnd& each : rows.ends) {
    end.bind(block).bind(each.state);
    for (std::size_t i = 0; i < kMeasured; ++i)
      end.bind(each.measured[i], static_cast<Objective>(kCounted + i) < Objective::modelled_us);
    good = good && end.run();
  }
  return good;
}

}  // namespace

StudyStore::StudyStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
StudyStore::StudyStore(StudyStore&&) noexcept = default;
StudyStore& StudyStore::operator=(StudyStore&&) noexcept = default;
StudyStore::~StudyStore() = default;

Result<StudyStore> StudyStore::open(const std::string& path, bool write) {
  if (const std::string problem = study_problem(); !problem.empty())
    return fail(error_in(path, "PW1451", "SQLite is unavailable: " + problem,
                         "install it (Debian: libsqlite3-0)"));
  auto database = std::make_unique<Database>(path);
  const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
  if (sqlite().open_v2(path.c_str(), &database->handle, flags, nullptr) != SQLITE_OK)
    return database->failed();
  sqlite().busy_timeout(database->handle, kWaitMs);
  sqlite().extended_result_codes(database->handle, 1);
  if (write) {
    // If two shards start together, the second waits and finds the tables.
    PW_TRY(database->run("BEGIN IMMEDIATE"));
    Query tables(database->handle, "SELECT count(*) FROM sqlite_master");
    const bool fresh = tables.next() && tables.number(0) == 0;
    tables.run();
    if (fresh)
      PW_TRY(database->run(std::string(kSchema) + "INSERT INTO study VALUES ('format', '" +
                           kFormat + "');"));
    PW_TRY(database->run("COMMIT"));
  }
  Query format(database->handle, "SELECT value FROM study WHERE key = 'format'");
  if (!format.next() || format.text(0) != kFormat)
    return format.good() ? Result<StudyStore>(fail(error_in(
                               path, "PW1460", "it is not a study of this version",
                               "a study is a SQLite file that `pwr explore --study` made")))
                         : Result<StudyStore>(database->failed());
  format.run();
  return StudyStore(std::move(database));
}

Status StudyStore::add_block(const StudyBlock& block) {
  Query insert(database_->handle,
               R"(INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)
                      ON CONFLICT DO NOTHING)");
  const bool good = insert.bind(block.key)
                        .bind(block.graph)
                        .bind(block.setting)
                        .bind(block.rules)
                        .bind(block.space)
                        .bind(text_of_list(block.passes))
                        .bind(text_of_list(block.objectives))
                        .bind(block.orders)
                        .bind(block.units)
                        .bind(block.start)
                        .bind(block.written)
                        .run();
  if (!good) return database_->failed();
  return {};
}

Result<std::set<std::uint64_t>> StudyStore::done(const std::string& block) {
  std::set<std::uint64_t> out;
  Query select(database_->handle, "SELECT unit FROM units WHERE block = ? ORDER BY unit");
  select.bind(block);
  while (select.next()) out.insert(out.end(), static_cast<std::uint64_t>(select.number(0)));
  if (!select.good()) return database_->failed();
  return out;
}

Result<std::set<std::string>> StudyStore::ends(const std::string& block) {
  std::set<std::string> out;
  Query select(database_->handle, "SELECT state FROM ends WHERE block = ? ORDER BY state");
  select.bind(block);
  while (select.next()) out.insert(out.end(), select.text(0));
  if (!select.good()) return database_->failed();
  return out;
}

Status StudyStore::add(const std::string& block, const StudyRows& rows) {
  PW_TRY(database_->run("BEGIN IMMEDIATE"));
  if (!write_rows(database_->handle, block, rows)) {
    auto failed = database_->failed();
    (void)database_->run("ROLLBACK");
    return failed;
  }
  return database_->run("COMMIT");
}

Result<bool> StudyStore::has_thefts(const std::string& block) {
  Query select(database_->handle, "SELECT thefts FROM blocks WHERE block = ?");
  const bool some = select.bind(block).next() && select.number(0) != 0;
  if (!select.good()) return database_->failed();
  return some;
}

Status StudyStore::add_thefts(const std::string& block, const std::vector<StudyTheft>& thefts) {
  PW_TRY(database_->run("BEGIN IMMEDIATE"));
  bool good = true;
  Query insert(database_->handle,
               R"(INSERT INTO thefts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                      ON CONFLICT DO NOTHING)");
  for (const StudyTheft& each : thefts)
    good = good && insert.bind(block)
                       .bind(each.thief_pass)
                       .bind(each.thief)
                       .bind(each.victim_pass)
                       .bind(each.victim)
                       .bind(static_cast<std::int64_t>(each.lost))
                       .bind(each.node)
                       .bind(text_of_list(each.losing))
                       .bind(text_of_list(each.keeping))
                       .run();
  Query mark(database_->handle, "UPDATE blocks SET thefts = 1 WHERE block = ?");
  good = good && mark.bind(block).run();
  if (!good) {
    auto failed = database_->failed();
    (void)database_->run("ROLLBACK");
    return failed;
  }
  return database_->run("COMMIT");
}

Status StudyStore::merge(const std::string& path) {
  PW_TRY(open(path, false));
  {
    Query attach(database_->handle, "ATTACH DATABASE ? AS other");
    if (!attach.bind(path).run()) return database_->failed();
  }
  const auto merged = [&]() -> Status {
    {
      Query clash(database_->handle,
                  R"(SELECT u.block, u.unit FROM main.units u JOIN other.units o USING
                         (block, unit) WHERE u.state <> o.state OR u."order" <> o."order" LIMIT 1)");
      if (clash.next())
        return fail(error_in(path, "PW1461",
                             fmt::format("unit {} of block {} has a different result here",
                                         clash.number(1), clash.text(0)),
                             "results depend on the order of rewrites (pwr fuzz-order), or were "
                             "made by different versions"));
      if (!clash.good()) return database_->failed();
    }
    PW_TRY(database_->run("BEGIN IMMEDIATE"));
    for (const char* table : kTables)
      PW_TRY(database_->run(
          fmt::format("INSERT INTO main.{0} SELECT * FROM other.{0} WHERE true ORDER BY 1, 2 "
                      "ON CONFLICT DO NOTHING",
                      table)));
    PW_TRY(database_->run(R"(UPDATE main.blocks SET thefts = 1 WHERE thefts = 0 AND EXISTS
        (SELECT 1 FROM other.blocks o WHERE o.block = main.blocks.block AND o.thefts = 1))"));
    return database_->run("COMMIT");
  }();
  if (!merged) (void)database_->run("ROLLBACK");
  PW_TRY(database_->run("DETACH DATABASE other"));
  return merged;
}

Status StudyStore::write_to(const std::string& path) {
  const std::string fresh = path + ".merging";
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  {
    Query vacuum(database_->handle, "VACUUM INTO ?");
    if (!vacuum.bind(fresh).run()) return database_->failed();
  }
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  if (error)
    return fail(error_in(path, "PW1460", "the file cannot be written: " + error.message(),
                         "name a file in a writable folder"));
  return {};
}

Result<std::vector<StudiedBlock>> StudyStore::read() {
  std::vector<StudiedBlock> out;
  sqlite3* db = database_->handle;
  Query blocks(db, "SELECT * FROM blocks ORDER BY graph, setting, block");
  while (blocks.next()) {
    StudiedBlock each;
    each.block = {blocks.text(0),
                  blocks.text(1),
                  blocks.text(2),
                  blocks.text(3),
                  blocks.text(4),
                  list_of_text(blocks.text(5)),
                  list_of_text(blocks.text(6)),
                  static_cast<std::uint64_t>(blocks.number(7)),
                  static_cast<std::uint64_t>(blocks.number(8)),
                  blocks.text(9),
                  blocks.text(10)};
    const std::string& key = each.block.key;
    Query states(db, "SELECT * FROM states WHERE block = ? ORDER BY state");
    for (states.bind(key); states.next();)
      each.states.push_back(
          {states.text(1), {states.number(2), states.number(3), states.number(4)}});
    Query steps(db, "SELECT * FROM steps WHERE block = ? ORDER BY state, pass");
    for (steps.bind(key); steps.next();)
      each.steps.push_back(
          {steps.text(1), steps.text(2), steps.text(3), static_cast<std::size_t>(steps.number(4))});
    Query ends(db, "SELECT * FROM ends WHERE block = ? ORDER BY state");
    for (ends.bind(key); ends.next();) {
      StudyEnd end{ends.text(1), {}};
      for (int i = 0; i < static_cast<int>(kMeasured); ++i)
        end.measured.push_back(ends.real(2 + i));
      each.ends.push_back(std::move(end));
    }
    Query thefts(db, "SELECT * FROM thefts WHERE block = ? ORDER BY 2, 3, 4, 5");
    for (thefts.bind(key); thefts.next();)
      each.thefts.push_back({thefts.text(1), thefts.text(2), thefts.text(3), thefts.text(4),
                             static_cast<std::size_t>(thefts.number(5)), thefts.text(6),
                             list_of_text(thefts.text(7)), list_of_text(thefts.text(8))});
    // With min(), SQLite takes the other columns of the row that has it.
    Query ended(db, R"(SELECT state, count(*), min(unit), "order" FROM units
        WHERE block = ? GROUP BY state ORDER BY state)");
    for (ended.bind(key); ended.next();) {
      each.ended.push_back({ended.text(0), static_cast<std::uint64_t>(ended.number(1)),
                            list_of_text(ended.text(3))});
      each.done += each.ended.back().orders;
    }
    if (!states.good() || !steps.good() || !ends.good() || !thefts.good() || !ended.good())
      return database_->failed();
    out.push_back(std::move(each));
  }
  if (!blocks.good()) return database_->failed();
  return out;
}

Result<std::vector<StudiedOrder>> StudyStore::best_orders(const std::string& objective,
                                                          std::size_t most) {
  std::vector<StudiedOrder> out;
  // The name is one of kObjectiveNames and never comes from a user.
  Query select(database_->handle, fmt::format(R"(
      WITH cost AS (SELECT block, state, {0} AS c FROM (SELECT * FROM states
                    LEFT JOIN ends USING (block, state)))
      SELECT u."order", count(*), avg(CASE WHEN w.c > 0 THEN 1.0 * e.c / w.c ELSE 1.0 END)
      FROM units u JOIN blocks b USING (block)
      JOIN cost e ON e.block = u.block AND e.state = u.state
      JOIN cost w ON w.block = b.block AND w.state = b.written
      GROUP BY u."order" ORDER BY count(*) DESC, 3, min(u.unit), u."order" LIMIT ?)",
                                              objective));
  select.bind(static_cast<std::int64_t>(most));
  while (select.next())
    out.push_back({list_of_text(select.text(0)), static_cast<std::size_t>(select.number(1)),
                   select.real(2).value_or(1)});
  if (!select.good()) return database_->failed();
  return out;
}

Status StudyStore::each_row(const std::function<void(const std::vector<std::string>&)>& row) {
  Query select(database_->handle,
               R"(SELECT graph, setting, unit, "order", state, nodes, ops, bytes, launches,
                      peak_bytes, modelled_us, measured_us, compile_ms, written FROM results
                      ORDER BY graph, setting, block, unit)");
  if (!select.good()) return database_->failed();
  std::vector<std::string> cells;
  for (int i = 0; i < select.columns(); ++i) cells.push_back(select.name(i));
  row(cells);
  while (select.next()) {
    for (int i = 0; i < select.columns(); ++i) cells[static_cast<std::size_t>(i)] = select.text(i);
    row(cells);
  }
  if (!select.good()) return database_->failed();
  return {};
}

#else

std::string study_problem() { return "this program was built without SQLite (libsqlite3-dev)"; }

struct StudyStore::Database {};
StudyStore::StudyStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
StudyStore::StudyStore(StudyStore&&) noexcept = default;
StudyStore& StudyStore::operator=(StudyStore&&) noexcept = default;
StudyStore::~StudyStore() = default;

// Only open() creates a StudyStore, so the functions below are never called.
Result<StudyStore> StudyStore::open(const std::string& path, bool) {
  return fail(error_in(path, "PW1451", study_problem(), "install it and rebuild"));
}
Status StudyStore::add_block(const StudyBlock&) { return {}; }
Result<std::set<std::uint64_t>> StudyStore::done(const std::string&) { return {}; }
Result<std::set<std::string>> StudyStore::ends(const std::string&) { return {}; }
Status StudyStore::add(const std::string&, const StudyRows&) { return {}; }
Result<bool> StudyStore::has_thefts(const std::string&) { return false; }
Status StudyStore::add_thefts(const std::string&, const std::vector<StudyTheft>&) { return {}; }
Status StudyStore::merge(const std::string&) { return {}; }
Status StudyStore::write_to(const std::string&) { return {}; }
Result<std::vector<StudiedBlock>> StudyStore::read() { return std::vector<StudiedBlock>(); }
Result<std::vector<StudiedOrder>> StudyStore::best_orders(const std::string&, std::size_t) {
  return std::vector<StudiedOrder>();
}
Status StudyStore::each_row(const std::function<void(const std::vector<std::string>&)>&) {
  return {};
}

#endif

}  // namespace pw
