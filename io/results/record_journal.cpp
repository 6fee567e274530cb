#include "io/results/record_journal.h"

#include <fstream>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/export/format/export_header.h"
#include "io/export/format/interrupted_run.h"
#include "io/files/input_set.h"
#include "io/files/rank_files.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

using Json = nlohmann::ordered_json;
using std::filesystem::path;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// "stats" of "attnscope-stats-part/1".
std::string command_of(const Json& identity) {
  const auto format = identity["format"].get<std::string>();
  const size_t begin = format.find('-') + 1;
  return format.substr(begin, format.find('-', begin) - begin);
}

/// The file's complete lines; none where it cannot be read.
std::vector<std::string> read_lines(const path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<std::string> lines;
  std::string line;
  // What has no line break was cut off.
  while (std::getline(stream, line) && !stream.eof()) lines.push_back(line);
  return lines;
}

/// The lines of a list of this run; none of one that was cut off in its first.
std::vector<std::string> lines_of_run(const path& file, const Json& identity) {
  const auto refuse = [&] {
    throw file_error(
        file.string(), "",
        "is no interrupted run of " + command_of(identity) + " (--force alone gives it up)");
  };
  // Before it is read as lines: a file of another kind may be large.
  if (record_list_at(file) == RecordList::none) refuse();
  std::vector<std::string> lines = read_lines(file);
  if (lines.empty()) return lines;
  const Json found = Json::parse(lines.front(), nullptr, false);
  if (!found.is_object() || !found.contains("format") || found["format"] != identity["format"]) {
    refuse();
  }
  expect_same_run(found, identity, file);
  return lines;
}

}  // namespace

RecordJournal::RecordJournal(path out, Json identity, std::string capture,
                             const OutputFileOptions& options, const Take& take)
    : identity_(std::move(identity)), sources_(options.sources) {
  file_.emplace(std::move(out), options);
  take_up_interrupted(*file_, RunForm::records, [&](const std::string& there) {
    ExportManifest wanted;
    wanted.capture = std::move(capture);
    wanted.capture_hash = identity_["capture_hash"].get<std::string>();
    wanted.options = line_of(identity_["options"]);
    wanted.version = version();
    return header_difference(there, wanted, file_->journal_path().string());
  });
  if (options.resume) load(take);
  if (kept_ == 0) {
    file_->remove_partial();
    file_->create_part();
    size_ = 0;
    write_line(line_of(identity_));
  }
  begin_syncs(options.sync);
}

RecordJournal::RecordJournal(const path& out, const Json& identity,
                             const OutputFileOptions& options, const std::string& invitation,
                             int rank)
    : identity_(identity), sources_(options.sources) {
  await_folder(out, invitation);
  own_ = PosixFile(rank_journal_path(out, rank), PosixFile::Mode::create);
  write_line(line_of(identity_));
  begin_syncs(options.sync);
}

void RecordJournal::begin_syncs(bool sync) {
  sync_.emplace(
      [this, sync] {
        if (sync) list().sync_data();
      },
      kDurableWithin);
}

void RecordJournal::load(const Take& take) {
  std::error_code none;
  if (!std::filesystem::exists(file_->part_path(), none)) return;
  // A record that was joined to OUT.part is in its own list as well until that goes.
  std::set<std::string> known;
  const auto take_new = [&](const std::string& line) {
    if (!take(Json::parse(line, nullptr, false))) return false;
    known.insert(line);
    ++kept_;
    return true;
  };
  const std::vector<std::string> first = lines_of_run(file_->part_path(), identity_);
  if (first.empty()) return;
  size_ = std::ssize(first.front()) + 1;
  for (size_t i = 1; i < first.size() && take_new(first[i]); ++i) size_ += std::ssize(first[i]) + 1;
  file_->reopen_part();
  file_->data().truncate(size_);
  for (const int rank : ranks_beside(file_->out())) {
    const path list = rank_journal_path(file_->out(), rank);
    if (!std::filesystem::exists(list, none)) continue;
    const std::vector<std::string> lines = lines_of_run(list, identity_);
    for (size_t i = 1; i < lines.size(); ++i) {
      if (known.count(lines[i]) != 0) continue;
      if (!take_new(lines[i])) break;
      write_line(lines[i] + "\n");
    }
  }
  file_->sync_data();
  file_->remove_rank_files();
}

void RecordJournal::write_line(const std::string& line) {
  list().write_at(std::as_bytes(std::span(line)), size_);
  size_ += std::ssize(line);
}

std::string RecordJournal::invite() {
  file_->keep_partial();
  // What says what the others' lists are of is on the disk before them.
  file_->sync_data();
  return show_folder(file_->out());
}

void RecordJournal::append(const Json& record) {
  if (sources_) sources_->require_reads_unchanged();
  write_line(line_of(record));
  if (file_) file_->keep_partial();
  sync_->wrote();
}

void RecordJournal::flush() { sync_->flush(); }

void RecordJournal::finish(const std::function<void(const path&)>& write) {
  std::error_code none;
  std::filesystem::remove(file_->new_part_path(), none);
  flush();
  write(file_->new_part_path());
  // The list is not written any more.
  sync_.reset();
  file_->open_new_part(static_cast<int64_t>(std::filesystem::file_size(file_->new_part_path())));
  // OUT.part is what a run that is killed here leaves: it stays the list until OUT is there.
  file_->commit_new_part();
  file_->remove_rank_files();
}

}  // namespace attnscope
