#include "io/export/format/interrupted_run.h"

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/leftovers.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// True where the files there are of that form, as far as names tell.
bool has_form(const path& out, RunForm form) {
  if (form == RunForm::tiles) return entry_exists(with_suffix(out, ".part"));
  if (form != RunForm::shards) return false;
  return entry_exists(with_suffix(out, ".d.part")) ||
         (entry_exists(with_suffix(out, ".d")) && entry_exists(with_suffix(out, ".part")));
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
  auto journal = find_interrupted(file.out(), form, difference);
  if (!journal && form != RunForm::records) file.remove_partial();
  return journal;
}

std::optional<JournalContent> find_interrupted(
    const path& out, RunForm form,
    const std::function<std::string(const std::string& header)>& difference) {
  const path part_shards = with_suffix(out, ".d.part"), journal_path = with_suffix(out, ".journal");
  const bool shards = entry_exists(part_shards);
  const path left = shards ? part_shards : with_suffix(out, ".part");
  // A journal alone means nothing: the run that wrote it was complete, or had not begun.
  std::optional<JournalContent> journal;
  if (entry_exists(left)) journal = read_journal(journal_path);
  if (journal) {
    std::string text = difference(journal->header);
    if (text.empty() && !has_form(out, form)) text = "it was written in another form";
    if (text.empty()) return journal;
    throw file_error(left.string(), "", "belongs to another export: " + text + kAdvice);
  }
  // The journal is made before the folder and goes after it.
  if (shards) {
    throw file_error(
        left.string(), "",
        "has no journal, " + journal_path.string() + ", that tells what it belongs to" + kAdvice);
  }
  if (form == RunForm::records) return std::nullopt;
  if (record_list_at(left) == RecordList::begun) {
    throw file_error(
        left.string(), "",
        std::string("belongs to an interrupted run of stats, mask or lab, and this is an export") +
            kAdvice);
  }
  return std::nullopt;
}

}  // namespace attnscope
