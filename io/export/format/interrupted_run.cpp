#include "io/export/format/interrupted_run.h"

#include "core/base/error.h"
#include "io/files/file_text.h"

namespace attnscope {
namespace {

using std::filesystem::path;

bool is_there(const path& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

/// True where the files there are of that form, as far as names tell.
bool has_form(const OutputFile& file, RunForm form) {
  if (form == RunForm::tiles) return is_there(file.part_path());
  if (form != RunForm::shards) return false;
  return is_there(file.part_shards_path()) ||
         (is_there(file.shards_path()) && is_there(file.part_path()));
}

constexpr const char* kAdvice = " (--force alone gives it up)";

}  // namespace

RecordList record_list_at(const path& file) {
  std::error_code none;
  const auto status = std::filesystem::status(file, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return RecordList::none;
  }
  const std::string start = beginning_of_file(file, 64);
  RecordList found = RecordList::none;
  for (const std::string_view list : kRecordLists) {
    if (start.starts_with(list)) return RecordList::begun;
    if (list.starts_with(start)) found = RecordList::torn;
  }
  return found;
}

std::optional<JournalContent> take_up_interrupted(
    OutputFile& file, RunForm form,
    const std::function<std::string(const std::string& header)>& difference) {
  if (!file.resumes()) return std::nullopt;
  const bool shards = is_there(file.part_shards_path());
  const path& left = shards ? file.part_shards_path() : file.part_path();
  // A journal alone means nothing: the run that wrote it was complete, or had not begun.
  std::optional<JournalContent> journal;
  if (is_there(left)) journal = read_journal(file.journal_path());
  if (journal) {
    std::string text = difference(journal->header);
    if (text.empty() && !has_form(file, form)) text = "it was written in another form";
    if (text.empty()) return journal;
    throw file_error(left.string(), "", "belongs to another export: " + text + kAdvice);
  }
  // The journal is made before the folder and goes after it.
  if (shards) {
    throw file_error(left.string(), "",
                     "has no journal, " + file.journal_path().string() +
                         ", that tells what it belongs to" + kAdvice);
  }
  if (form == RunForm::records) return std::nullopt;
  if (record_list_at(left) == RecordList::begun) {
    throw file_error(
        left.string(), "",
        std::string("belongs to an interrupted run of stats or mask, and this is an export") +
            kAdvice);
  }
  file.remove_partial();
  return std::nullopt;
}

}  // namespace attnscope
