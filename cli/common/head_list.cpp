#include "cli/common/head_list.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "io/files/file_text.h"
#include "io/files/strict_json.h"
#include "io/metrics/read_table.h"

namespace attnscope {
namespace {

constexpr int64_t kMostListBytes = 256 << 20;

/// Reads the facts of one row.
class RowReader {
 public:
  RowReader(const std::string& file, std::string place, const Json& row)
      : file_(file), place_(std::move(place)), row_(row) {}

  HeadPattern read() const {
    if (!row_.is_object()) throw file_error(file_, place_, "expected an object that names a head");
    HeadPattern pattern;
    const auto head = number("head");
    if (!head) throw file_error(file_, place_, "names no head");
    pattern.head = *head;
    pattern.step = number("step");
    pattern.layer = number("layer");
    pattern.batch = number("batch");
    pattern.chunk = number("chunk");
    pattern.branch = text("branch");
    pattern.kind = text("kind");
    pattern.block = text("block");
    pattern.slot = text("slot");
    return pattern;
  }

 private:
  const Json* value(const char* name) const {
    const auto found = row_.find(name);
    return found == row_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<int64_t> number(const char* name) const {
    const Json* const found = value(name);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number_integer()) {
      throw file_error(file_, place_ + "." + name, "expected a whole number");
    }
    return found->get<int64_t>();
  }
  std::optional<std::string> text(const char* name) const {
    const Json* const found = value(name);
    if (found == nullptr) return std::nullopt;
    if (!found->is_string()) throw file_error(file_, place_ + "." + name, "expected a text");
    return found->get<std::string>();
  }

  const std::string& file_;
  const std::string place_;
  const Json& row_;
};

std::vector<HeadPattern> read_json_list(const std::string& file) {
  const Json root = parse_strict_json(read_file_text(file, "a list of heads", kMostListBytes), file,
                                      "", {.values = int64_t{1} << 26, .memory = int64_t{2} << 30});
  const bool pairs = root.is_object() && root.contains("pairs");
  const char* const name = pairs ? "pairs" : "heads";
  const auto rows = root.is_object() ? root.find(name) : root.end();
  if (rows == root.end() || !rows->is_array()) {
    throw file_error(file, "heads",
                     "is no list of heads (expected attnscope-heads/1, or what stats, mask or diff "
                     "write)");
  }
  std::vector<HeadPattern> heads;
  for (const Json& row : *rows) {
    const std::string place = fmt::format("{}[{}]", name, heads.size());
    const bool has_side = pairs && row.is_object() && row.contains("a");
    heads.push_back(
        RowReader(file, has_side ? place + ".a" : place, has_side ? row["a"] : row).read());
  }
  return heads;
}

std::vector<HeadPattern> read_table_list(const std::string& file) {
  MemoryBudget budget(int64_t{2} << 30);
  MemoryReservation held;
  std::vector<HeadPattern> heads;
  for (const NumberTable::Line& line : read_number_table(file, budget, held).lines) {
    heads.push_back(HeadPattern::of(line.head));
  }
  return heads;
}

}  // namespace

std::shared_ptr<const HeadSet> read_head_list(const std::string& path) {
  const bool is_json = std::filesystem::path(path).extension() == ".json";
  if (!is_json && !is_number_table(path)) {
    // Names the fault of what cannot be read at all.
    read_file_text(path, "a list of heads", kMostListBytes);
    throw file_error(path, "", "is no list of heads (expected a .json, or a .csv or .h5 of stats)");
  }
  std::vector<HeadPattern> heads = is_json ? read_json_list(path) : read_table_list(path);
  if (heads.empty()) throw file_error(path, "", "lists no head");
  return std::make_shared<const HeadSet>(std::move(heads), "--from " + one_line(path));
}

void refuse_list_as_output(const std::string& list, const std::string& out) {
  std::error_code none;
  if (list.empty() || out.empty() || !std::filesystem::equivalent(list, out, none)) return;
  throw usage_error(fmt::format("-o {}: is the list of heads that --from reads", one_line(out)));
}

}  // namespace attnscope
