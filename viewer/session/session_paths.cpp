#include "viewer/session/session_paths.h"

#include "core/problem/token_order.h"
#include "viewer/session/remote_place.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// Without the slash at the end that folders are often given with.
path plain(const path& file) {
  const path normal = file.lexically_normal();
  return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

}  // namespace

std::string stored_path(const std::string& name, const path& folder) {
  if (folder.empty() || is_remote_name(name)) return name;
  const path whole = plain(std::filesystem::absolute(name));
  const path below = whole.lexically_relative(plain(folder));
  return below.empty() || *below.begin() == ".." ? whole.string() : below.string();
}

std::string told_path(const path& file) { return plain(std::filesystem::absolute(file)).string(); }

std::string opened_path(const std::string& name, const path& folder) {
  if (folder.empty() || is_remote_name(name)) return name;
  return plain(folder / name).string();
}

void open_files(FactOverrides& facts, const path& folder) {
  for (const TextFact& fact : kTextFacts) {
    std::optional<std::string>& value = facts.*fact.value;
    if (value && fact.names_file(*value)) value = opened_path(*value, folder);
  }
}

std::string stored_order(const std::string& file, const path& folder) {
  return order_file_word(stored_path(file, folder));
}

std::string order_file_word(const std::string& file) {
  const bool named = TokenOrder::is_name(file) || file.find_first_of("./") == std::string::npos;
  return named ? "./" + file : file;
}

std::vector<std::pair<std::string, std::string>> fact_options(const FactOverrides& facts,
                                                              const path& folder) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const TextFact& fact : kTextFacts) {
    const std::optional<std::string>& value = facts.*fact.value;
    if (!value) continue;
    options.emplace_back(fact.option,
                         fact.names_file(*value) ? stored_path(*value, folder) : *value);
  }
  for (const auto& [name, value] : facts.told) options.emplace_back("--as", name + "=" + value);
  if (facts.score != ScoreFunction::softmax) {
    options.emplace_back("--score", score_name(facts.score));
  }
  return options;
}

}  // namespace attnscope
