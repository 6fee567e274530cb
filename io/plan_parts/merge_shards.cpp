#include "io/plan_parts/merge_shards.h"

#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_journal.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/replaced_shards.h"
#include "io/export/write/shard_master.h"
#include "io/files/checksum.h"
#include "io/files/leftovers.h"
#include "io/files/output_file.h"
#include "io/files/shard_folder.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

class ShardsMerge {
 public:
  ShardsMerge(const MergedExport& whole, const fs::path& out, bool copy,
              const ExportWriteOptions& options, const MergeControl& control)
      : whole_(whole),
        copy_(copy),
        options_(options),
        control_(control),
        file_(out, options.for_shards()) {}

  MergeResult run() {
    const ExportManifest wanted = make_manifest(whole_.spec, whole_.layout, {});
    MergeResult result;
    result.warnings = file_.warnings();
    result.complete_already = is_complete_already(file_, wanted, options_);
    if (result.complete_already) {
      ReplacedShards().remove(file_);
      return result;
    }
    begin(wanted);
    const std::vector<Shard> shards = take_all();
    whole_.inputs->require_unchanged();
    const std::string note =
        commit_shards(file_, whole_.spec, whole_.layout, shards, options_.sync);
    if (!note.empty()) result.notes.push_back(note);
    result.bytes_written = bytes_;
    return result;
  }

 private:
  /// The journal tells the next run whose the folder is; what stands in it is known by its names.
  void begin(const ExportManifest& wanted) {
    const auto old = take_up_same_export(file_, RunForm::shards, wanted);
    if (!old && !options_.force && entry_exists(file_.shards_path()) &&
        !entry_exists(file_.out())) {
      throw file_error(file_.shards_path().string(), "",
                       "already exists (--force writes into it; what no OUT names stays)");
    }
    if (old && entry_exists(file_.part_shards_path()))
      require_shards_alone(file_.part_shards_path());
    if (!old) {
      ExportJournal::create(file_.journal_path(), make_export_header(wanted), options_.sync);
    }
    std::error_code error;
    fs::create_directory(file_.part_shards_path(), error);
    if (error) {
      throw errno_error(file_.part_shards_path(), "cannot be created", error.value());
    }
  }

  /// Where it fails, what was copied is kept, and people are told.
  std::vector<Shard> take_all() {
    std::vector<Shard> shards;
    try {
      for (const auto& part : whole_.parts) {
        for (const Shard& shard : part->stored().shards) {
          take(*part, shard);
          shards.push_back(shard);
        }
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::interrupted || !kept_) throw;
      throw Error(error.code(),
                  std::string(error.what()) + "; the shards before it are kept in " +
                      file_.part_shards_path().string() +
                      ": --resume goes on once this is mended, --force gives them up",
                  error.place());
    }
    return shards;
  }

  void take(const PartFile& part, const Shard& shard) {
    if (control_.stop.stop_requested()) {
      throw Error(ErrorCode::interrupted, "interrupted: what was joined is in " +
                                              file_.part_shards_path().string() +
                                              "; --resume goes on");
    }
    const fs::path from = part.path().parent_path() / part.stored().shard_folder / shard.file;
    const fs::path to = file_.part_shards_path() / shard.file;
    if (!entry_exists(to) && !is_moved(shard)) {
      const InputFile source(from);
      if (source.size() != shard.bytes) {
        throw file_error(from.string(), "",
                         "has " + std::to_string(source.size()) + " bytes, expected " +
                             std::to_string(shard.bytes));
      }
      std::error_code error;
      if (!copy_ && fs::is_regular_file(fs::symlink_status(from, error))) {
        fs::create_hard_link(from, to, error);
        if (!error) return step(shard.bytes);
      }
      copy_shard(source, shard, to);
    }
    step(shard.bytes);
  }

  /// True where an interrupted merge, or an older OUT, has the shard in OUT.d as it was written.
  bool is_moved(const Shard& shard) const {
    const fs::path file = file_.shards_path() / shard.file;
    std::error_code error;
    return fs::is_regular_file(fs::symlink_status(file, error)) &&
           file_checksum(file, control_.stop) == shard.checksum;
  }

  void copy_shard(const InputFile& source, const Shard& shard, const fs::path& to) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    fs::path part = to;
    part += ".tmp";
    std::error_code ignored;
    fs::remove(part, ignored);
    PosixFile file(part, PosixFile::Mode::create);
    std::vector<std::byte> piece;
    for (int64_t at = 0; at < source.size(); at += kPiece) {
      piece.resize(static_cast<size_t>(std::min(kPiece, source.size() - at)));
      source.read_at(at, piece);
      file.write_at(piece, at);
    }
    if (options_.sync) file.sync();
    file.close();
    if (file_checksum(part, control_.stop) != shard.checksum) {
      throw file_error(source.path().string(), "",
                       "is not what was written (its checksum differs)");
    }
    rename_file(part, to, true);
    file_.keep_partial();
    kept_ = true;
  }

  void step(int64_t bytes) {
    bytes_ += bytes;
    if (control_.progress) control_.progress(bytes_, 0);
  }

  const MergedExport& whole_;
  const bool copy_;
  const ExportWriteOptions& options_;
  const MergeControl& control_;
  OutputFile file_;
  int64_t bytes_ = 0;
  bool kept_ = false;  ///< a shard was copied, which the next run need not copy
};

}  // namespace

int64_t shards_bytes(const MergedExport& whole) {
  int64_t bytes = 0;
  for (const auto& part : whole.parts) {
    for (const Shard& shard : part->stored().shards) bytes += shard.bytes;
  }
  return bytes;
}

MergeResult merge_shards(const MergedExport& whole, const fs::path& out, bool copy,
                         const ExportWriteOptions& options, const MergeControl& control) {
  return ShardsMerge(whole, out, copy, options, control).run();
}

}  // namespace attnscope
