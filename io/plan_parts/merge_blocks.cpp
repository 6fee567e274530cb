#include "io/plan_parts/merge_blocks.h"

#include <span>
#include <vector>

#include "core/base/error.h"
#include "io/export/format/export_plan.h"
#include "io/export/write/pooled_export.h"

namespace attnscope {
namespace {

/// Copies the rows of blocks of one level of a piece of a group.
class LevelCopy {
 public:
  LevelCopy(const MergedExport& whole, size_t group, const GroupPiece& piece, PooledExport& out)
      : group_(group),
        piece_(piece),
        out_(out),
        whole_heads_(std::ssize(whole.layout.groups[group].heads)) {}

  void copy(int64_t level, const PartFile::Level& from, int64_t items) {
    std::vector<float> max(static_cast<size_t>(from.cols)), mean(max.size());
    for (int64_t item = 0; item < items; ++item) {
      for (int64_t head = 0; head < piece_.heads; ++head) {
        for (int64_t row = 0; row < from.rows; ++row) {
          const int64_t at = (((item * piece_.heads + head) * from.rows) + row) * from.cols * 4;
          piece_.part->file().read_at(from.max + at, std::as_writable_bytes(std::span(max)));
          piece_.part->file().read_at(from.mean + at, std::as_writable_bytes(std::span(mean)));
          out_.write_row(group_, item * whole_heads_ + piece_.first_head + head, level, row, max,
                         mean);
        }
      }
    }
  }

 private:
  const size_t group_;
  const GroupPiece& piece_;
  PooledExport& out_;
  const int64_t whole_heads_;
};

}  // namespace

MergeResult merge_blocks(const MergedExport& whole, const std::filesystem::path& out,
                         const ExportWriteOptions& options, const MergeControl& control) {
  const auto pooled = make_pooled_export(ExportPlan(whole.spec, whole.layout), out, options);
  int64_t done = 0;
  for (size_t g = 0; g < whole.pieces.size(); ++g) {
    const auto items = std::ssize(whole.layout.groups[g].batch);
    for (const GroupPiece& piece : whole.pieces[g]) {
      if (control.stop.stop_requested()) {
        throw Error(ErrorCode::interrupted, "interrupted: nothing was kept");
      }
      const auto& levels = piece.part->blocks_of(piece.group).levels;
      LevelCopy copy(whole, g, piece, *pooled);
      for (size_t level = 0; level < levels.size(); ++level) {
        copy.copy(static_cast<int64_t>(level), levels[level], items);
        done += items * piece.heads * levels[level].rows * levels[level].cols * 8;
      }
      if (control.progress) control.progress(done, 0);
    }
  }
  pooled->end();
  return {
      .complete_already = false, .bytes_written = done, .warnings = {}, .notes = pooled->notes()};
}

}  // namespace attnscope
