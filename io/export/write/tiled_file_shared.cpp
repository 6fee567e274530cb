// A file that several processes write: the first one's part, and the others'.
#include "io/export/write/tiled_file.h"

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/files/rank_files.h"

namespace attnscope {

TiledFile::TiledFile(const ExportSpec& spec, const ExportLayout& layout, std::filesystem::path out,
                     const ExportWriteOptions& options, const ExportInvitation& invitation,
                     int rank)
    : layout_(layout),
      sync_(options.sync),
      commits_(options.commits),
      header_(make_export_header(make_manifest(spec, layout, {}))),
      shared_(true),
      file_(std::move(out), options.for_file(0), OutputFile::Beside{}) {
  resume_.complete = invitation.complete;
  resume_.resumed = invitation.resumed;
  stored_ = make_manifest(spec, layout, invitation.places);
  if (resume_.complete) return;
  await_folder(file_.out(), invitation.token);
  file_.reopen_part();
  set_stored(std::move(stored_));
  if (recorded_structure_checksum(stored_, file_.data()) != invitation.structure) {
    throw file_error(file_.part_path().string(), "", "is not the file that the first process made");
  }
  before_->set_words(invitation.done);
  sums_.emplace(rank_sums_path(file_.out(), rank), sync_);
  const std::filesystem::path journal = rank_journal_path(file_.out(), rank);
  open_journal(journal, ExportJournal::create(journal, header_, sync_));
}

ExportInvitation TiledFile::invite() {
  ExportInvitation result;
  result.complete = resume_.complete;
  if (result.complete) return result;
  shared_ = true;
  file_.keep_partial();
  result.resumed = resume_.resumed;
  result.structure = recorded_structure_checksum(stored_, file_.data());
  result.places.complete = stored_.complete;
  result.places.structure = stored_.structure;
  result.places.file_bytes = stored_.file_bytes;
  for (const StoredGroup& group : stored_.groups) result.places.groups.push_back(group.places);
  result.done = before_->words();
  result.token = show_folder(file_.out());
  return result;
}

int64_t TiledFile::hand_in() {
  file_.require_sources_unchanged();
  suspend();
  if (!sums_) return 0;
  sums_->sync();
  const int64_t pieces = sums_->pieces();
  close_journal();
  sums_.reset();
  return pieces;
}

void TiledFile::gather(const PromisedSums& left) {
  replay_promised_sums(file_.out(), left, file_.data());
}

}  // namespace attnscope
