#include "viewer/session/session_paths.h"

#include "core/problem/token_order.h"
#include "io/capture/facts/mask_fact.h"
#include "viewer/session/remote_place.h"

namespace attnscope {
namespace {

using std::filesystem::path;

bool is_list(const std::string& cuts) {
  return cuts.find_first_not_of("0123456789, ") == std::string::npos;
}

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

std::string opened_path(const std::string& name, const path& folder) {
  if (folder.empty() || is_remote_name(name)) return name;
  return plain(folder / name).string();
}

std::string stored_mask(const std::string& mask, const path& folder) {
  return is_mask_word(mask) ? mask : stored_path(mask, folder);
}

std::string opened_mask(const std::string& mask, const path& folder) {
  return is_mask_word(mask) ? mask : opened_path(mask, folder);
}

std::string stored_cuts(const std::string& cuts, const path& folder) {
  return is_list(cuts) ? cuts : stored_path(cuts, folder);
}

std::string opened_cuts(const std::string& cuts, const path& folder) {
  return is_list(cuts) ? cuts : opened_path(cuts, folder);
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
    const bool mask = fact.value == &FactOverrides::mask;
    const bool cuts =
        fact.value == &FactOverrides::cu_seqlens || fact.value == &FactOverrides::cu_seqlens_k;
    options.emplace_back(fact.option, mask   ? stored_mask(*value, folder)
                                      : cuts ? stored_cuts(*value, folder)
                                             : *value);
  }
  for (const auto& [name, value] : facts.told) options.emplace_back("--as", name + "=" + value);
  if (facts.score != ScoreFunction::softmax) {
    options.emplace_back("--score", score_name(facts.score));
  }
  return options;
}

}  // namespace attnscope
