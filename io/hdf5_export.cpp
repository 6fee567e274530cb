#include "io/hdf5_export.h"

#include <atomic>
#include <bit>
#include <stdexcept>

#include "core/checked_math.h"
#include "core/error.h"
#include "io/chunk_writer.h"
#include "io/export_file.h"
#include "io/export_layout.h"
#include "io/export_skeleton.h"
#include "io/lse_writer.h"

namespace attnscope {
namespace {

// Tiles, LSEs and checksums go from memory to the file as they are.
static_assert(std::endian::native == std::endian::little);

/// Which head of which group a task fills.
struct TaskPlace {
  size_t group = 0;
  int64_t head = 0;  ///< batch item · number of heads + head, within the group
};

std::vector<HeadTask> make_tasks(const ExportLayout& layout) {
  std::vector<HeadTask> tasks;
  for (const ExportGroup& group : layout.groups) {
    for (int64_t item : group.batch) {
      for (int64_t head : group.heads) {
        tasks.push_back(
            {group.call->problem.get(), item, head, group.row_range, group.row_list, group.keys});
      }
    }
  }
  return tasks;
}

/// A broken contract between engine and sink is a defect of ours, and must not spoil a file.
void expect(bool condition, const char* what) {
  if (!condition) throw std::logic_error(std::string("Hdf5Export: ") + what);
}

/// Rough sizes of what the library adds: headers, attributes, scales and their lists a group.
constexpr int64_t kFileOverhead = 6 * 1024;
constexpr int64_t kGroupOverhead = 24 * 1024;
/// int32 index, t, y, x and an 8-bit segment.
constexpr int64_t kCoordinateBytes = 4 * 4 + 1;

int64_t sum_sizes(std::initializer_list<int64_t> sizes) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    const auto sum = checked_add(total, size);
    if (!sum) throw usage_error("export: the maps are too large for a file");
    total = *sum;
  }
  return total;
}

/// What a file takes at the least, whatever the library adds.
int64_t least_bytes(const ExportLayout& layout) {
  int64_t bytes = 0;
  for (const ExportGroup& group : layout.groups) {
    if (layout.has_entries()) bytes = sum_sizes({bytes, group.grid.bytes()});
    if (group.has_lse) bytes = sum_sizes({bytes, group.num_heads() * group.num_rows() * 4});
  }
  return bytes;
}

}  // namespace

std::string_view export_product_name(ExportProduct product) {
  switch (product) {
    case ExportProduct::weights:
      return "weights";
    case ExportProduct::logits:
      return "logits";
    case ExportProduct::lse:
      return "lse";
    case ExportProduct::rows:
      break;
  }
  return "rows";
}

ExportSize estimate_export(const ExportSpec& spec) {
  const ExportLayout layout = make_export_layout(spec);
  ExportSize size;
  size.file_bytes = kFileOverhead + static_cast<int64_t>(spec.options_json.size());
  for (const ExportGroup& group : layout.groups) {
    const ChunkGrid& grid = group.grid;
    // make_export_layout has checked the larger products of these factors.
    const int64_t lse = group.has_lse ? grid.heads * grid.rows * 4 : 0;
    const int64_t entries =
        layout.has_entries() ? grid.heads * grid.rows * grid.cols * grid.element_bytes : 0;
    const int64_t stored = layout.has_entries() ? grid.bytes() + 4 * grid.chunks() : 0;
    size.payload_bytes = sum_sizes({size.payload_bytes, entries, lse});
    size.file_bytes = sum_sizes(
        {size.file_bytes, stored, lse, kGroupOverhead, kCoordinateBytes * (grid.rows + grid.cols)});
  }
  return size;
}

std::vector<HeadTask> export_tasks(const ExportSpec& spec) {
  return make_tasks(make_export_layout(spec));
}

TileRequest export_request(const ExportSpec& spec) { return make_export_layout(spec).request; }

void check_export_target(const std::filesystem::path& out, const ExportWriteOptions& options) {
  ExportFile::check_target(out, options.force, 0, options.inputs);
}

struct Hdf5Export::Impl {
  Impl(ExportSpec the_spec, std::filesystem::path out, const ExportWriteOptions& options)
      : spec(std::move(the_spec)),
        layout(make_export_layout(spec)),
        tasks(make_tasks(layout)),
        file(std::move(out), options.force, options.sync, least_bytes(layout), options.inputs) {
    places = write_export_skeleton(spec, layout, file.part_path());
    file.open_part(places.file_bytes);
    for (size_t g = 0; g < layout.groups.size(); ++g) {
      for (int64_t head = 0; head < layout.groups[g].num_heads(); ++head) {
        task_places.push_back({g, head});
      }
    }
    for (const ExportGroup& group : layout.groups) {
      if (layout.has_entries()) chunks_missing += group.grid.chunks();
      if (group.has_lse) rows_missing += group.num_heads() * group.num_rows();
    }
  }

  void write_entries(const Tile& tile, const TaskPlace& place);
  void write_lse(const Tile& tile, const TaskPlace& place);

  ExportSpec spec;
  ExportLayout layout;  ///< borrows spec's lists
  std::vector<HeadTask> tasks;
  std::vector<TaskPlace> task_places;
  ExportFile file;
  ExportPlaces places;
  LseWriter lse_writer{file};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> chunks_missing{0};
  std::atomic<int64_t> rows_missing{0};
};

void Hdf5Export::Impl::write_entries(const Tile& tile, const TaskPlace& place) {
  const TileRequest& request = layout.request;
  const ChunkGrid& grid = layout.groups[place.group].grid;
  const GroupPlaces& at = places.groups[place.group];
  expect(tile.rows.begin % request.chunk_rows == 0 &&
             tile.rows.end == std::min(tile.rows.begin + grid.chunk_rows, grid.rows),
         "a tile must have whole rows of chunks");
  const int64_t first = tile.cols.begin / request.chunk_cols;
  const auto count = static_cast<int64_t>(tile.chunks.size());
  expect(tile.cols.begin % request.chunk_cols == 0 && count > 0 &&
             first + count <= grid.col_chunks() &&
             (first + count) * request.chunk_cols >= tile.cols.end,
         "a tile must have whole chunks");
  const ChunkTarget target{grid, at.entries, at.entries_checksums};
  const std::vector<const std::byte*> chunks(tile.chunks.begin(), tile.chunks.end());
  bytes += write_chunks(
      file, target,
      {place.head, tile.rows.begin / request.chunk_rows, first, request.chunk_cols, chunks});
  chunks_missing -= count;
}

void Hdf5Export::Impl::write_lse(const Tile& tile, const TaskPlace& place) {
  const GroupPlaces& at = places.groups[place.group];
  const int64_t rows = layout.groups[place.group].num_rows();
  expect(static_cast<int64_t>(tile.norms.size()) == tile.rows.size() && tile.rows.begin >= 0 &&
             tile.rows.end <= rows,
         "a tile must have a norm for each of its rows");
  const LseTarget target{at.lse + place.head * rows * 4, at.lse_checksums + place.head * 4, rows};
  lse_writer.write(tile.task_index, target, tile.rows.begin, tile.norms);
  bytes += tile.rows.size() * 4;
  rows_missing -= tile.rows.size();
}

Hdf5Export::Hdf5Export(ExportSpec spec, std::filesystem::path out,
                       const ExportWriteOptions& options)
    : impl_(std::make_unique<Impl>(std::move(spec), std::move(out), options)) {}

Hdf5Export::~Hdf5Export() = default;

std::span<const HeadTask> Hdf5Export::tasks() const { return impl_->tasks; }

TileRequest Hdf5Export::request() const { return impl_->layout.request; }

void Hdf5Export::begin(std::span<const HeadTask> tasks, int) {
  expect(tasks.data() == impl_->tasks.data() && tasks.size() == impl_->tasks.size(),
         "the stream must be that of tasks()");
}

void Hdf5Export::consume(const Tile& tile) {
  const TaskPlace& place = impl_->task_places.at(static_cast<size_t>(tile.task_index));
  if (impl_->layout.has_entries()) impl_->write_entries(tile, place);
  if (impl_->layout.groups[place.group].has_lse && tile.first_segment) {
    impl_->write_lse(tile, place);
  }
}

void Hdf5Export::end() {
  expect(impl_->chunks_missing == 0 && impl_->rows_missing == 0,
         "every tile must be consumed once");
  // The mark must never be durable before what it vouches for.
  impl_->file.sync_data();
  const std::byte complete{1};
  impl_->file.write_at({&complete, 1}, impl_->places.complete);
  impl_->file.commit();
}

int64_t Hdf5Export::bytes_written() const { return impl_->bytes; }

}  // namespace attnscope
