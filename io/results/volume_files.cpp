#include "io/results/volume_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "io/files/staged_file.h"
#include "io/results/csv_field.h"
#include "io/results/volume_check.h"
#include "io/tensors/npy_header.h"

namespace attnscope {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Collects lines and hands them on in pieces, so that a long volume takes no more memory.
class LineWriter {
 public:
  explicit LineWriter(StagedFile& file) : file_(file) {}
  void add(std::string_view line) {
    lines_ += line;
    if (lines_.size() >= kPieceBytes) flush();
  }
  void flush() {
    file_.append(as_bytes(lines_));
    lines_.clear();
  }

 private:
  static constexpr size_t kPieceBytes = 1 << 18;
  StagedFile& file_;
  std::string lines_;
};

/// The columns that only some captures have.
struct PlaceColumns {
  bool names = false;  ///< block and slot
  bool chunk = false;
  std::vector<ForwardFact> forward;  ///< those that any volume has

  explicit PlaceColumns(const QueryVolumes& volumes) {
    for (const QueryVolume& volume : volumes.volumes) {
      names |= volume.place.is_recorded();
      chunk |= volume.place.has_chunk();
    }
    for (const ForwardFact& fact : kForwardFacts) {
      if (std::any_of(volumes.volumes.begin(), volumes.volumes.end(), [&](const QueryVolume& v) {
            return v.place.forward.*fact.number != fact.none;
          })) {
        forward.push_back(fact);
      }
    }
  }
  std::string header() const {
    std::string text = std::string(names ? "block,slot," : "") + (chunk ? "chunk," : "");
    for (const ForwardFact& fact : forward) text += std::string(fact.name) + ",";
    return text;
  }
  std::string values(const ModelPlace& place) const {
    std::string text;
    if (names) text += fmt::format(",{},{}", csv_text(place.block), csv_text(place.slot));
    if (chunk) text += place.has_chunk() ? fmt::format(",{}", place.chunk) : ",";
    for (const ForwardFact& fact : forward) {
      const int64_t number = place.forward.*fact.number;
      text += number != fact.none ? fmt::format(",{}", number) : ",";
    }
    return text;
  }
};

void write_csv_volume(LineWriter& lines, const QueryVolumes& volumes, const QueryVolume& v,
                      const PlaceColumns& places) {
  const Unrecorded& unrecorded = v.place.unrecorded;
  const std::string head =
      fmt::format("{},{},{},{},{},{}", unrecorded.step ? "" : std::to_string(v.step),
                  unrecorded.layer ? "" : std::to_string(v.layer),
                  unrecorded.branch ? "" : csv_text(v.branch), v.kind, v.batch, v.head) +
      places.values(v.place);
  const std::vector<std::string>& tokens = volumes.tokens_of(v);
  for (size_t i = 0; i < v.text.size(); ++i) {
    const std::string token = i < tokens.size() ? csv_text(tokens[i]) : "";
    lines.add(fmt::format("{},text,{},,,,{},{}\n", head, i, token, v.text[i]));
  }
  const auto& [frames, height, width] = volumes.grid;
  for (size_t i = 0; i < v.video.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const std::string place = frames == 0 ? ",,"
                                          : fmt::format("{},{},{}", at / (height * width),
                                                        at / width % height, at % width);
    lines.add(fmt::format("{},video,{},{},,{}\n", head, at, place, v.video[i]));
  }
  for (const SegmentValues& part : v.others) {
    for (size_t i = 0; i < part.values.size(); ++i) {
      lines.add(fmt::format("{},{},{},,,,,{}\n", head, csv_text(part.name), i, part.values[i]));
    }
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
  check_volumes(volumes, false);
  StagedFile file(path, force);
  const PlaceColumns places(volumes);
  file.append(as_bytes(fmt::format(
      "step,layer,branch,kind,batch,head,{}segment,index,t,y,x,token,weight\n", places.header())));
  LineWriter lines(file);
  for (const QueryVolume& v : volumes.volumes) write_csv_volume(lines, volumes, v, places);
  lines.flush();
  file.commit();
}

}  // namespace attnscope
