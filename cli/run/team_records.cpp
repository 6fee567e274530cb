#include "cli/run/team_records.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

std::string record_text(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

bool is_recorded_already(const Console& console, const std::filesystem::path& out,
                         std::string_view command, const OrderedJson& identity, int64_t total,
                         bool removes) {
  const OrderedJson header = record_list_header(command, identity);
  std::error_code none;
  if (out.extension() == ".csv" && std::filesystem::exists(out, none)) {
    const int64_t left = records_left(out, header);
    if (left == total) return false;
    if (left > 0) {
      throw file_error(out.string(), "",
                       fmt::format("exists, and a .csv does not say what it was made of; {} of {} "
                                   "heads of this run stand beside it (--resume --force goes on "
                                   "with them and replaces it)",
                                   left, total));
    }
  }
  if (!is_complete_already(console, out, command, identity)) return false;
  if (removes) remove_records_left(out, header);
  return true;
}

void TeamRecords::open(const std::filesystem::path& out, const OrderedJson& header,
                       const std::string& capture, const OutputFileOptions& options,
                       const Console& console) {
  std::string told;
  if (team_.is_first()) {
    journal_.emplace(out, header, capture, options, [&](const OrderedJson& record) {
      const std::optional<int64_t> unit = take_(record);
      if (unit) there_.push_back(*unit);
      return unit.has_value();
    });
    for (const std::string& warning : journal_->warnings()) console.warn(warning);
    std::sort(there_.begin(), there_.end());
    team_.keep(journal_->kept());
    if (!team_.is_alone()) told = record_text({{"folder", journal_->invite()}, {"there", there_}});
  }
  if (team_.is_alone()) return;
  const OrderedJson first = OrderedJson::parse(team_.exchange(told).front());
  if (team_.is_first()) return;
  there_ = first["there"].get<std::vector<int64_t>>();
  journal_.emplace(out, header, options, first["folder"].get<std::string>(), team_.rank());
}

void TeamRecords::add(const OrderedJson& record) {
  if (journal_) {
    journal_->append(record);
    team_.keep(team_.kept() + 1);
  }
  if (!team_.is_first()) mine_ += record_text(record) + "\n";
}

void TeamRecords::flush() {
  if (journal_) journal_->flush();
}

void TeamRecords::collect() {
  for (const std::string& lines : team_.collect(mine_)) {
    for (size_t at = 0; at < lines.size();) {
      const size_t end = lines.find('\n', at);
      const OrderedJson record = OrderedJson::parse(lines.substr(at, end - at));
      if (!take_(record)) throw Error(ErrorCode::value, "a process sent what is no record");
      at = end + 1;
    }
  }
}

bool TeamRecords::finish(const std::function<void(const std::filesystem::path&)>& write) {
  return journal_->finish(write);
}

}  // namespace attnscope
