// A file that several processes write: the first one's part, and the others'.
#include "io/export/write/tiled_file.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/files/rank_files.h"

namespace attnscope {
namespace {

/// Other hosts may see a new file only after a while.
constexpr std::chrono::seconds kSeenWithin{60};
constexpr std::chrono::milliseconds kLook{50};

std::string fresh_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += std::to_string(random()) + " ";
  return token + std::to_string(getpid());
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

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
  await_folder(invitation.token);
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

/// Returns when this process sees what the first one wrote beside OUT.
void TiledFile::await_folder(const std::string& token) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (content_of(rank_sums_path(file_.out(), 0)) != token) {
    if (Clock::now() - begin > kSeenWithin) {
      throw file_error(file_.out().string(), "",
                       "is not in a folder that this host shares with the first process's: what "
                       "that wrote there is not to be seen");
    }
    std::this_thread::sleep_for(kLook);
  }
}

ExportInvitation TiledFile::invite() {
  ExportInvitation result;
  result.complete = resume_.complete;
  if (result.complete) return result;
  shared_ = true;
  file_.keep_partial();
  result.resumed = resume_.resumed;
  result.token = fresh_token();
  result.structure = recorded_structure_checksum(stored_, file_.data());
  result.places.complete = stored_.complete;
  result.places.structure = stored_.structure;
  result.places.file_bytes = stored_.file_bytes;
  for (const StoredGroup& group : stored_.groups) result.places.groups.push_back(group.places);
  result.done = before_->words();
  PosixFile seen(rank_sums_path(file_.out(), 0), PosixFile::Mode::create);
  seen.write_at(std::as_bytes(std::span(result.token)), 0);
  seen.sync();
  seen.close();
  return result;
}

void TiledFile::hand_in() {
  file_.require_sources_unchanged();
  suspend();
  if (!sums_) return;
  // A process without a tile has an empty log, which the first one looks for as well.
  sums_->sync();
  journal_.reset();
  sums_.reset();
}

void TiledFile::gather(int processes) {
  for (int rank = 1; rank < processes; ++rank) {
    const std::filesystem::path log = rank_sums_path(file_.out(), rank);
    std::error_code error;
    if (!std::filesystem::exists(log, error)) {
      throw file_error(log.string(), "", "cannot be found: it has checksums of the export");
    }
    replay_sums(log, file_.data());
  }
}

}  // namespace attnscope
