#include "io/results/volume_files.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "core/products/frame_track.h"
#include "io/files/staged_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"
#include "io/results/volume_check.h"
#include "io/tensors/npy_header.h"

namespace attnscope {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

constexpr size_t kLayerColumn = 1;  // of HeadColumns

/// Collects lines and hands them on in pieces, so that a long volume takes no more memory.
class LineWriter {
 public:
  explicit LineWriter(const std::function<void(std::string_view)>& put) : put_(put) {}
  void add(std::string_view line) {
    lines_ += line;
    if (lines_.size() >= kPieceBytes) flush();
  }
  void flush() {
    put_(lines_);
    lines_.clear();
  }

 private:
  static constexpr size_t kPieceBytes = 1 << 18;
  const std::function<void(std::string_view)>& put_;
  std::string lines_;
};

HeadName name_of(const QueryVolume& v) {
  return {v.step, v.layer, v.branch, v.kind, v.batch, v.head, v.place};
}

std::vector<std::string> head_fields_of(const QueryVolume& v, const HeadColumns& columns) {
  std::vector<std::string> head = columns.fields(name_of(v));
  // Like a step or a head that it is the mean over; a layer that is none is empty.
  if (v.averaged > 1 && v.layer == kNoLayer && v.place.block.empty()) head[kLayerColumn] = "-1";
  return head;
}

void write_csv_volume(LineWriter& lines, const QueryVolumes& volumes, const QueryVolume& v,
                      const HeadColumns& columns) {
  const std::vector<std::string> head = head_fields_of(v, columns);
  // Segment, index, t, y, x and token of a weight.
  const auto add = [&](const std::array<std::string, 6>& place, float weight) {
    std::vector<std::string> fields = head;
    fields.insert(fields.end(), place.begin(), place.end());
    fields.push_back(fmt::to_string(weight));
    lines.add(csv_line(fields));
  };
  const std::vector<std::string>& tokens = volumes.tokens_of(v);
  for (size_t i = 0; i < v.text.size(); ++i) {
    add({"text", std::to_string(i), "", "", "", i < tokens.size() ? csv_text(tokens[i]) : ""},
        v.text[i]);
  }
  const auto& [frames, height, width] = volumes.grid;
  for (size_t i = 0; i < v.video.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    std::array<std::string, 6> place{"video", std::to_string(at)};
    if (frames != 0) {
      place[2] = std::to_string(at / (height * width));
      place[3] = std::to_string(at / width % height);
      place[4] = std::to_string(at % width);
    }
    add(place, v.video[i]);
  }
  for (const SegmentValues& part : v.others) {
    for (size_t i = 0; i < part.values.size(); ++i) {
      add({csv_text(part.name), std::to_string(i), "", "", "", ""}, part.values[i]);
    }
  }
}

/// A line a frame.
void write_csv_track(LineWriter& lines, const QueryVolumes& volumes, const QueryVolume& v,
                     const HeadColumns& columns) {
  const std::vector<std::string> head = head_fields_of(v, columns);
  const auto text = [](const auto& value) {
    return value ? fmt::to_string(*value) : std::string();
  };
  for (const TrackPoint& point : frame_track(v.video, volumes.grid)) {
    std::vector<std::string> fields = head;
    fields.push_back(std::to_string(point.t));
    for (const auto& place : {point.best_y, point.best_x}) fields.push_back(text(place));
    fields.push_back(fmt::to_string(static_cast<float>(point.best_weight)));
    for (const auto& value : {point.centre_y, point.centre_x, std::optional(point.mass)}) {
      fields.push_back(text(value));
    }
    lines.add(csv_line(fields));
  }
}

}  // namespace

void write_volumes_npy(const QueryVolumes& volumes, const std::filesystem::path& path, bool force) {
  check_volumes(volumes, true);
  StagedFile file(path, force);
  file.append(as_bytes(npy_header("<f4", {static_cast<int64_t>(volumes.volumes.size()),
                                          volumes.grid[0], volumes.grid[1], volumes.grid[2]})));
  for (const QueryVolume& volume : volumes.volumes) {
    file.append(std::as_bytes(std::span(volume.video)));
  }
  file.commit();
}

void write_volumes_csv(const QueryVolumes& volumes, const std::filesystem::path& path, bool force) {
  StagedFile file(path, force);
  put_volumes_csv(volumes, [&](std::string_view text) { file.append(as_bytes(text)); });
  file.commit();
}

void put_volumes_csv(const QueryVolumes& volumes,
                     const std::function<void(std::string_view)>& put) {
  check_volumes(volumes, false);
  HeadColumns columns;
  for (const QueryVolume& v : volumes.volumes) columns.add(name_of(v));
  std::vector<std::string> titles = columns.titles();
  const std::vector<std::string> own =
      volumes.tracked
          ? std::vector<std::string>{"t",        "best_y",   "best_x", "best_weight",
                                     "centre_y", "centre_x", "mass"}
          : std::vector<std::string>{"segment", "index", "t", "y", "x", "token", "weight"};
  titles.insert(titles.end(), own.begin(), own.end());
  LineWriter lines(put);
  lines.add(csv_line(titles));
  for (const QueryVolume& v : volumes.volumes) {
    (volumes.tracked ? write_csv_track : write_csv_volume)(lines, volumes, v, columns);
  }
  lines.flush();
}

}  // namespace attnscope
