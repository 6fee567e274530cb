#include "io/export/write/pooled_export.h"

#include <fmt/core.h>

#include <deque>
#include <optional>

#include "core/base/checked_math.h"
#include "core/reduce/pyramid_rows.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/output_file.h"

namespace attnscope {
namespace {

constexpr int64_t kBytesPerBlock = 8;  // max and mean in float32

/// One level of one group.
struct LevelData {
  int64_t block = 0, rows = 0, cols = 0;  ///< blocks
  Hdf5Dataset max, mean;
  int64_t bytes(int64_t heads) const { return heads * rows * cols * kBytesPerBlock; }
};

struct GroupData {
  const ExportGroup* layout = nullptr;
  Hdf5Group group;
  std::vector<LevelData> levels;
};

std::vector<LevelData> levels_of(const PoolBlocks& blocks, const ExportGroup& group) {
  const int64_t rows = group.num_rows();
  const int64_t cols = group.keys.size();
  const int64_t count = blocks.pyramid ? PyramidRows::levels(rows, cols, blocks.side) : 1;
  std::vector<LevelData> levels;
  for (int64_t level = 0; level < count; ++level) {
    LevelData data;
    data.block = blocks.side << level;
    data.rows = ceil_div(rows, data.block);
    data.cols = ceil_div(cols, data.block);
    levels.push_back(std::move(data));
  }
  return levels;
}

Hdf5Dataset write_block_scale(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                              const std::vector<int32_t>& values, std::string_view long_name) {
  const auto extent = static_cast<int64_t>(values.size());
  Hdf5Dataset scale = writer.write<int32_t>(parent, name, std::span(values), {&extent, 1});
  writer.make_scale(scale, name, extent);
  writer.attribute(scale.id(), "long_name", long_name);
  return scale;
}

std::vector<int32_t> first_indices(int64_t begin, int64_t block, int64_t count) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(begin + i * block));
  return values;
}

class PooledFile final : public PooledExport {
 public:
  PooledFile(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options)
      : plan_(std::move(plan)),
        sync_(options.sync),
        file_(std::move(out), options.for_file(pooled_payload_bytes(plan_), false)),
        jobs_(pooled_jobs(plan_)) {
    take_up_same_export(file_, RunForm::nothing, make_manifest(plan_.spec, plan_.layout, {}));
    const Hdf5Session session;
    try {
      create_file();
    } catch (...) {
      // While the session lives.
      groups_.clear();
      writer_.reset();
      throw;
    }
    // Jobs follow the groups' heads.
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (int64_t head = 0; head < groups_[g].layout->num_heads(); ++head) {
        pyramids_.emplace_back(groups_[g].layout->num_rows(), groups_[g].layout->keys.size(),
                               plan_.spec.blocks().side, plan_.spec.blocks().pyramid,
                               [this, g, head](int64_t level, int64_t row, auto max, auto mean) {
                                 write(groups_[g], head, level, row, max, mean);
                               });
      }
    }
  }

  ~PooledFile() override {
    const Hdf5Session session;
    pyramids_.clear();
    groups_.clear();
    writer_.reset();
  }

  const std::vector<ReductionJob>& jobs() const override { return jobs_; }

  void block_row(int64_t job, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override {
    pyramids_[static_cast<size_t>(job)].add(row, max, sum);
  }

  void head(int64_t, const HeadTotals&) override {}

  void write_row(size_t group, int64_t head, int64_t level, int64_t row, std::span<const float> max,
                 std::span<const float> mean) override {
    write(groups_[group], head, level, row, max, mean);
  }

  void end() override {
    file_.require_sources_unchanged();
    {
      const Hdf5Session session;
      groups_.clear();
      writer_->close();
      writer_.reset();
    }
    file_.open_new_part(static_cast<int64_t>(std::filesystem::file_size(file_.new_part_path())));
    seal_export(stored_, file_.data());
    file_.publish_part();
    note_replaced_shards(file_, sync_);
    file_.commit();
    const std::string note = remove_replaced_shards(file_);
    if (!note.empty()) notes_.push_back(note);
  }
  const std::vector<std::string>& notes() const override { return notes_; }

 private:
  void create_file() {
    writer_.emplace(file_.new_part_path());
    write_root_attributes(*writer_, plan_.spec);
    create_export_marks(*writer_, "1 when every block is there", stored_);
    const Hdf5Group calls = writer_->create_group(writer_->root(), "calls");
    for (const ExportGroup& group : plan_.layout.groups) create_group(calls.id(), group);
  }

  void create_group(hid_t calls, const ExportGroup& group) {
    GroupData data{&group, writer_->create_group(calls, group.name),
                   levels_of(plan_.spec.blocks(), group)};
    write_group_attributes(*writer_, data.group.id(), plan_.spec, group);
    write_part_call(*writer_, data.group.id(), plan_.spec, group);
    const std::vector<int32_t> items(group.batch.begin(), group.batch.end());
    const std::vector<int32_t> head_numbers(group.heads.begin(), group.heads.end());
    const Hdf5Dataset batch =
        write_block_scale(*writer_, data.group.id(), "batch", items, "batch item");
    const Hdf5Dataset head =
        write_block_scale(*writer_, data.group.id(), "head", head_numbers, "head");
    for (LevelData& level : data.levels) {
      std::optional<Hdf5Group> inner;
      if (plan_.spec.blocks().pyramid) {
        inner.emplace(writer_->create_group(data.group.id(), fmt::format("level_{}", level.block)));
      }
      const hid_t parent = inner ? inner->id() : data.group.id();
      const Hdf5Dataset queries = write_block_scale(
          *writer_, parent, "query_block",
          first_indices(group.row_range.begin, level.block, level.rows), "first query of a block");
      const Hdf5Dataset keys = write_block_scale(
          *writer_, parent, "key_block", first_indices(group.keys.begin, level.block, level.cols),
          "first key of a block");
      const Hdf5Dataset* const scales[] = {&batch, &head, &queries, &keys};
      level.max = create(parent, level, group, "weights_max", "largest weight of a block", scales);
      level.mean = create(parent, level, group, "weights_mean",
                          "mean weight of a block over the entries that exist", scales);
    }
    groups_.push_back(std::move(data));
  }

  Hdf5Dataset create(hid_t parent, const LevelData& level, const ExportGroup& group,
                     const std::string& name, std::string_view long_name,
                     std::span<const Hdf5Dataset* const> scales) const {
    const int64_t shape[] = {static_cast<int64_t>(group.batch.size()),
                             static_cast<int64_t>(group.heads.size()), level.rows, level.cols};
    // Preallocated: otherwise the head whose first row of blocks comes first would take the first
    // place in the file, and the bytes would depend on the workers' order.
    Hdf5Dataset dataset = writer_->create_dataset(parent, name, Hdf5Writer::file_type<float>(),
                                                  shape, Hdf5Storage::preallocated);
    writer_->attribute(dataset.id(), "long_name", long_name);
    writer_->attribute(dataset.id(), "units", "1");
    writer_->attribute(dataset.id(), "block", level.block);
    writer_->attach_scales(dataset, scales);
    return dataset;
  }

  void write(const GroupData& group, int64_t head, int64_t level, int64_t row,
             std::span<const float> max, std::span<const float> mean) {
    const LevelData& data = group.levels[static_cast<size_t>(level)];
    const auto heads = static_cast<int64_t>(group.layout->heads.size());
    const int64_t begin[] = {head / heads, head % heads, row, 0};
    const int64_t count[] = {1, 1, 1, data.cols};
    const Hdf5Session session;
    writer_->write_block<float>(data.max, max, begin, count, "weights_max");
    writer_->write_block<float>(data.mean, mean, begin, count, "weights_mean");
  }

  const ExportPlan plan_;
  const bool sync_;
  OutputFile file_;
  std::vector<std::string> notes_;
  const std::vector<ReductionJob> jobs_;
  ExportManifest stored_;
  std::optional<Hdf5Writer> writer_;
  std::vector<GroupData> groups_;
  std::deque<PyramidRows> pyramids_;  ///< one a job
};

}  // namespace

std::unique_ptr<PooledExport> make_pooled_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options) {
  return std::make_unique<PooledFile>(std::move(plan), std::move(out), options);
}

std::vector<ReductionJob> pooled_jobs(const ExportPlan& plan) {
  ReductionRequest request;
  request.block = plan.spec.blocks().side;
  std::vector<ReductionJob> jobs;
  for (const HeadTask& task : plan.tasks) jobs.push_back({task, request});
  return jobs;
}

int64_t pooled_payload_bytes(const ExportPlan& plan) {
  int64_t bytes = 0;
  for (const ExportGroup& group : plan.layout.groups) {
    for (const LevelData& level : levels_of(plan.spec.blocks(), group)) {
      bytes += level.bytes(group.num_heads());
    }
  }
  return bytes;
}

int64_t pooled_memory_bytes(const ExportPlan& plan, int64_t rows) {
  const PoolBlocks& blocks = plan.spec.blocks();
  if (!blocks.pyramid) return 0;
  int64_t most = 0;
  for (const ExportGroup& group : plan.layout.groups) {
    // Half as many rows, half as long, on each level; and one that waits on each.
    const int64_t cols = ceil_div(group.keys.size(), blocks.side);
    most = std::max(most, cols * 12 * (ceil_div(rows, blocks.side) + 2));
  }
  return most;
}

}  // namespace attnscope
