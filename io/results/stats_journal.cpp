#include "io/results/stats_journal.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/export/format/export_header.h"
#include "io/export/format/interrupted_run.h"
#include "io/results/head_json.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The file's complete lines; none where it cannot be read.
std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  std::string line;
  // What has no line break was cut off.
  while (std::getline(file, line) && !file.eof()) lines.push_back(line);
  return lines;
}

}  // namespace

StatsJournal::StatsJournal(std::filesystem::path out, Json identity, std::string capture,
                           const OutputFileOptions& options)
    : identity_(std::move(identity)), file_(std::move(out), options) {
  take_up_interrupted(file_, RunForm::records, [&](const std::string& there) {
    ExportManifest wanted;
    wanted.capture = std::move(capture);
    wanted.capture_hash = identity_["capture_hash"].get<std::string>();
    wanted.options = line_of(identity_["options"]);
    wanted.version = version();
    return header_difference(there, wanted, file_.journal_path().string());
  });
  if (options.resume) load();
  if (!kept_.empty()) {
    file_.reopen_part();
    file_.data().truncate(size_);
  } else {
    file_.remove_partial();
    file_.create_part();
    size_ = 0;
    write_line(identity_);
  }
  sync_.emplace([this] { file_.sync_data(); }, kDurableWithin);
}

void StatsJournal::load() {
  std::error_code none;
  if (!std::filesystem::exists(file_.part_path(), none)) return;
  // Before it is read as lines: a file of another kind may be large.
  if (record_list_at(file_.part_path()) == RecordList::none) {
    throw file_error(file_.part_path().string(), "",
                     "is no interrupted run of stats (--force alone gives it up)");
  }
  const std::vector<std::string> lines = read_lines(file_.part_path());
  if (lines.empty()) return;
  const Json found = Json::parse(lines.front(), nullptr, false);
  if (!found.is_object() || !found.contains("format") || found["format"] != identity_["format"]) {
    throw file_error(file_.part_path().string(), "",
                     "is no interrupted run of stats (--force alone gives it up)");
  }
  expect_same_run(found, identity_, file_.part_path());
  size_ = static_cast<int64_t>(lines.front().size()) + 1;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::optional<HeadRecord> record = parse_head_json(Json::parse(lines[i], nullptr, false));
    if (!record) return;
    size_ += static_cast<int64_t>(lines[i].size()) + 1;
    kept_.push_back(std::move(*record));
  }
}

void StatsJournal::write_line(const Json& json) {
  const std::string line = line_of(json);
  file_.write_at(std::as_bytes(std::span(line)), size_);
  size_ += static_cast<int64_t>(line.size());
}

void StatsJournal::append(const HeadRecord& record) {
  file_.require_source_reads_unchanged();
  write_line(head_json(record));
  file_.keep_partial();
  sync_->wrote();
}

void StatsJournal::flush() { sync_->flush(); }

void StatsJournal::finish(const std::function<void(const std::filesystem::path&)>& write) {
  std::error_code none;
  std::filesystem::remove(file_.new_part_path(), none);
  flush();
  write(file_.new_part_path());
  // The list is not written any more.
  sync_.reset();
  file_.open_new_part(static_cast<int64_t>(std::filesystem::file_size(file_.new_part_path())));
  // OUT.part is what a run that is killed here leaves: it stays the list until OUT is there.
  file_.commit_new_part();
}

}  // namespace attnscope
