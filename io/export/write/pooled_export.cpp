#include "io/export/write/pooled_export.h"

#include <fmt/core.h>

#include <bit>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/checked_math.h"
#include "core/reduce/pyramid_rows.h"
#include "io/export/format/export_layout.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/sums_log.h"
#include "io/export/write/call_index.h"
#include "io/export/write/export_attributes.h"
#include "io/export/write/export_coordinates.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/replaced_shards.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/files/rank_files.h"

namespace attnscope {
namespace {

// Rows of blocks go from memory to the file as they are.
static_assert(std::endian::native == std::endian::little);

constexpr int64_t kBytesPerBlock = 8;  // max and mean in float32

/// One level of one group.
struct LevelData {
  int64_t block = 0, rows = 0, cols = 0;  ///< blocks
  int64_t max = -1, mean = -1;            ///< where float32 [batch, head, row, col] of each stands
  int64_t bytes(int64_t heads) const { return heads * rows * cols * kBytesPerBlock; }
};

struct GroupData {
  const ExportGroup* layout = nullptr;
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

std::vector<int32_t> first_indices(int64_t begin, int64_t block, int64_t count) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(begin + i * block));
  return values;
}

class PooledFile final : public PooledExport {
 public:
  PooledFile(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options)
      : plan_(std::move(plan)), sync_(options.sync), jobs_(pooled_jobs(plan_)) {
    file_.emplace(std::move(out), options.for_file(pooled_payload_bytes(plan_), false));
    take_up_same_export(*file_, RunForm::nothing, make_manifest(plan_.spec, plan_.layout, {}));
    list_groups();
    create_file();
    file_->open_new_part(static_cast<int64_t>(std::filesystem::file_size(file_->new_part_path())));
    make_pyramids();
  }

  PooledFile(ExportPlan plan, const std::filesystem::path& out, const ExportWriteOptions& options,
             const Json& invitation, int rank)
      : plan_(std::move(plan)),
        sync_(options.sync),
        jobs_(pooled_jobs(plan_)),
        sources_(options.sources) {
    await_folder(out, invitation.at("folder"));
    list_groups();
    auto place = invitation.at("places").begin();
    for (GroupData& group : groups_) {
      for (LevelData& level : group.levels) {
        level.max = *place++;
        level.mean = *place++;
      }
    }
    log_.emplace(rank_sums_path(out, rank), sync_);
    make_pyramids();
  }

  const std::vector<ReductionJob>& jobs() const override { return jobs_; }

  void block_row(int64_t job, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override {
    pyramids_[static_cast<size_t>(job)].add(row, max, sum);
  }

  void head(int64_t, const HeadTotals&) override {
    if (log_) log_->sync();
  }

  void write_row(size_t group, int64_t head, int64_t level, int64_t row, std::span<const float> max,
                 std::span<const float> mean) override {
    write(groups_[group], head, level, row, max, mean);
  }

  std::string invite() override {
    Json places = Json::array();
    for (const GroupData& group : groups_) {
      for (const LevelData& level : group.levels) {
        places.push_back(level.max);
        places.push_back(level.mean);
      }
    }
    return Json{{"folder", show_folder(file_->out())}, {"places", places}}.dump();
  }

  int64_t hand_in() override {
    if (sources_) sources_->require_unchanged();
    if (!log_) return 0;
    log_->sync();
    return log_->pieces();
  }

  void gather(const PromisedSums& left) override {
    shared_ = true;
    replay_promised_sums(file_->out(), left, file_->data());
  }

  void end() override {
    file_->require_sources_unchanged();
    seal_export(stored_, file_->data());
    file_->publish_part();
    ReplacedShards replaced;
    replaced.note(*file_, recorded_structure_checksum(stored_, file_->data()), sync_);
    file_->commit();
    if (shared_) file_->remove_rank_files();
    const std::string note = replaced.remove(*file_);
    if (!note.empty()) notes_.push_back(note);
  }
  const std::vector<std::string>& warnings() const override { return file_->warnings(); }
  const std::vector<std::string>& notes() const override { return notes_; }

 private:
  void list_groups() {
    for (const ExportGroup& group : plan_.layout.groups) {
      groups_.push_back({&group, levels_of(plan_.spec.blocks(), group)});
    }
  }

  /// Jobs follow the groups' heads.
  void make_pyramids() {
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

  /// The structure; the blocks' places in it are then ours to write to.
  void create_file() {
    const Hdf5Session session;
    Hdf5Writer writer(file_->new_part_path());
    write_root_attributes(writer, plan_.spec);
    create_export_marks(writer, "1 when every block is there", stored_);
    {
      write_call_index(writer, plan_.layout.groups);
      const Hdf5Group calls = writer.create_group(writer.root(), "calls");
      for (GroupData& group : groups_) create_group(writer, calls.id(), group);
    }
    writer.close();
  }

  void create_group(const Hdf5Writer& writer, hid_t calls, GroupData& data) const {
    const ExportGroup& group = *data.layout;
    const Hdf5Group made = writer.create_group(calls, group.name);
    write_group_attributes(writer, made.id(), plan_.spec, group);
    write_part_call(writer, made.id(), plan_.spec, group);
    const std::vector<int32_t> items(group.batch.begin(), group.batch.end());
    const std::vector<int32_t> head_numbers(group.heads.begin(), group.heads.end());
    const Hdf5Dataset batch = write_scale(writer, made.id(), "batch", items, "batch item");
    const Hdf5Dataset head = write_scale(writer, made.id(), "head", head_numbers, "head");
    for (LevelData& level : data.levels) {
      std::optional<Hdf5Group> inner;
      if (plan_.spec.blocks().pyramid) {
        inner.emplace(writer.create_group(made.id(), fmt::format("level_{}", level.block)));
      }
      const hid_t parent = inner ? inner->id() : made.id();
      const Hdf5Dataset queries = write_scale(
          writer, parent, "query_block",
          first_indices(group.row_range.begin, level.block, level.rows), "first query of a block");
      const Hdf5Dataset keys = write_scale(writer, parent, "key_block",
                                           first_indices(group.keys.begin, level.block, level.cols),
                                           "first key of a block");
      const Hdf5Dataset* const scales[] = {&batch, &head, &queries, &keys};
      level.max =
          create(writer, parent, level, group, "weights_max", "largest weight of a block", scales);
      level.mean = create(writer, parent, level, group, "weights_mean",
                          "mean weight of a block over the entries that exist", scales);
    }
  }

  /// Where its values stand.
  static int64_t create(const Hdf5Writer& writer, hid_t parent, const LevelData& level,
                        const ExportGroup& group, const std::string& name,
                        std::string_view long_name, std::span<const Hdf5Dataset* const> scales) {
    const int64_t shape[] = {static_cast<int64_t>(group.batch.size()),
                             static_cast<int64_t>(group.heads.size()), level.rows, level.cols};
    const Hdf5Dataset dataset = writer.create_dataset(parent, name, Hdf5Writer::file_type<float>(),
                                                      shape, Hdf5Storage::preallocated);
    writer.attribute(dataset.id(), "long_name", long_name);
    writer.attribute(dataset.id(), "units", "1");
    writer.attribute(dataset.id(), "block", level.block);
    writer.attach_scales(dataset, scales);
    return writer.address(dataset);
  }

  /// Into the file, or where another process puts it in: hosts must not write to one page of it.
  void put(std::span<const float> values, int64_t place) {
    const auto bytes = std::as_bytes(values);
    if (log_) return log_->add(bytes, place);
    file_->write_at(bytes, place);
  }

  void write(const GroupData& group, int64_t head, int64_t level, int64_t row,
             std::span<const float> max, std::span<const float> mean) {
    const LevelData& data = group.levels[static_cast<size_t>(level)];
    const int64_t first = (head * data.rows + row) * data.cols * 4;
    put(max, data.max + first);
    put(mean, data.mean + first);
  }

  const ExportPlan plan_;
  const bool sync_;
  const std::vector<ReductionJob> jobs_;
  bool shared_ = false;
  std::optional<OutputFile> file_;  ///< of the first process, or the only one
  std::optional<SumsLog> log_;      ///< of another
  std::shared_ptr<const InputSet> sources_;
  std::vector<std::string> notes_;
  ExportManifest stored_;
  std::vector<GroupData> groups_;
  std::deque<PyramidRows> pyramids_;  ///< one a job
};

}  // namespace

std::unique_ptr<PooledExport> make_pooled_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options) {
  return std::make_unique<PooledFile>(std::move(plan), std::move(out), options);
}

std::unique_ptr<PooledExport> join_pooled_export(ExportPlan plan, const std::filesystem::path& out,
                                                 const ExportWriteOptions& options,
                                                 const std::string& invitation, int rank) {
  return std::make_unique<PooledFile>(std::move(plan), out, options, Json::parse(invitation), rank);
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
