#include "cli/run/kept_numbers.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/version.h"
#include "io/capture/content_hash.h"
#include "io/results/head_json.h"
#include "io/results/head_tables.h"

namespace attnscope {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

/// The name of the call's head that the record is of; nothing where it has no such head.
std::optional<HeadName> name_in(const CallEntry& call, const HeadName& recorded) {
  const AttentionProblem& problem = *call.problem;
  if (recorded.batch < 0 || recorded.batch >= problem.batch() || recorded.head < 0 ||
      recorded.head >= problem.num_heads()) {
    return std::nullopt;
  }
  return head_name(call.id, recorded.batch, recorded.head);
}

/// Of the file's name and its rows, so that a changed digit or a renamed file is noticed.
std::string checksum(const std::string& name, const OrderedJson& rows) {
  ContentHash hash{std::stop_token()};
  hash.add(name);
  hash.add(rows.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  return hash.hex();
}

void add_kept(const CallEntry& call, const std::string& file_name, const OrderedJson& file,
              HeadRecords& records) {
  if (!file.is_object() || !file.contains("heads") || !file["heads"].is_array()) return;
  if (!file.contains("checksum") || file["checksum"] != checksum(file_name, file["heads"])) return;
  for (const OrderedJson& row : file["heads"]) {
    std::optional<HeadRecord> record = parse_head_json(row);
    const auto name = record ? name_in(call, record->name) : std::nullopt;
    if (!name) continue;
    record->name = *name;
    records.emplace(*name, std::move(*record));
  }
}

}  // namespace

KeptNumbers::KeptNumbers(std::vector<std::filesystem::path> folders,
                         std::vector<SelectedCall> calls, std::span<const std::string> call_hashes,
                         const StatsChoice& choice, const TileBackend& backend)
    : folders_(std::move(folders)), calls_(std::move(calls)) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    ContentHash key{std::stop_token()};
    key.add(std::string(version()));
    key.add(call_hashes[i]);
    key.add(choice_json(choice).dump());
    key.add(std::string(backend.name_for(*calls_[i].call->problem)));
    names_.push_back("stats-" + key.hex() + ".json");
  }
}

HeadRecords KeptNumbers::load() const {
  HeadRecords records;
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (const std::filesystem::path& folder : folders_.all()) {
      const auto bytes = load_cache_file(folder, names_[i], kMostBytes);
      if (!bytes) continue;
      const auto* const text = reinterpret_cast<const char*>(bytes->data());
      const OrderedJson file = OrderedJson::parse(text, text + bytes->size(), nullptr, false);
      add_kept(*calls_[i].call, names_[i], file, records);
      break;
    }
  }
  return records;
}

std::string KeptNumbers::store(const HeadRecords& known, const HeadRecords& fresh) {
  std::string failure;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const AttentionProblem& problem = *calls_[i].call->problem;
    std::vector<HeadRecord> records;
    bool is_new = false;
    for (int64_t item = 0; item < problem.batch(); ++item) {
      for (int64_t head = 0; head < problem.num_heads(); ++head) {
        const HeadName name = head_name(calls_[i].call->id, item, head);
        const auto found = fresh.find(name);
        is_new |= found != fresh.end();
        const auto old = known.find(name);
        if (found != fresh.end()) {
          records.push_back(found->second);
        } else if (old != known.end()) {
          records.push_back(old->second);
        }
      }
    }
    if (!is_new) continue;
    OrderedJson file = stats_json(OrderedJson::object(), records);
    file["checksum"] = checksum(names_[i], file["heads"]);
    const std::string text = file.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
    const auto wrong = folders_.store(names_[i], std::as_bytes(std::span(text)));
    if (wrong) failure = *wrong;
  }
  return failure;
}

}  // namespace attnscope
