#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "io/export/format/export_journal.h"
#include "io/files/output_file.h"

namespace attnscope {

/// As what a run that does not end leaves its work, for --resume.
enum class RunForm : uint8_t {
  nothing,  ///< not at all: the next run starts afresh
  tiles,    ///< OUT.part, and which tiles it holds in OUT.journal
  shards,   ///< the folder OUT.d.part (OUT.part and OUT.d, at the end), and OUT.journal
  records   ///< OUT.part, a list that begins as one of kRecordLists
};

/// How the OUT.part of runs of stats, of mask and of lab begins, before the number of the format.
constexpr std::string_view kRecordLists[] = {R"({"format":"attnscope-stats-part/)",
                                             R"({"format":"attnscope-mask-part/)",
                                             R"({"format":"attnscope-lab-part/)"};

/// The state of a file as a list of records; torn: it ends within the beginning of one.
enum class RecordList : uint8_t { none, torn, begun };
RecordList record_list_at(const std::filesystem::path& file);

/// The one rule of every output that is to be resumed: what an interrupted run left beside OUT is
/// gone on with by the same run alone, any other is refused and loses nothing; what no run can go
/// on with is removed. (Without `resume` OutputFile refuses whatever is left, and with `force`
/// alone it gives it up.)
///
/// To be called once, before anything is written, with the lock of `file` held. `form` is that of
/// the caller's run; `difference` says in what an interrupted export, by its journal's header,
/// differs from it, and nothing where it does not. Returns the journal to go on with; nothing where
/// the caller starts afresh, or without `resume`. A list of records is left to a caller of that
/// form to compare. Throws Error(file), also where a journal cannot be read or is missing.
std::optional<JournalContent> take_up_interrupted(
    OutputFile& file, RunForm form,
    const std::function<std::string(const std::string& header)>& difference);

/// What take_up_interrupted() of a run with `resume` would return or throw; changes nothing.
std::optional<JournalContent> find_interrupted(
    const std::filesystem::path& out, RunForm form,
    const std::function<std::string(const std::string& header)>& difference);

}  // namespace attnscope
