#include "cli/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/report/report_facts.h"
#include "core/base/error.h"
#include "io/files/input_file.h"

namespace attnscope {
namespace {

/// Of one picture; larger ones are no frames of a video.
constexpr int64_t kMostPictureBytes = 16 << 20;

/// The type of a picture by its first bytes; empty: none that browsers show.
std::string picture_type(const std::vector<std::byte>& bytes) {
  const auto begins = [&](std::initializer_list<int> first) {
    if (bytes.size() < first.size()) return false;
    return std::equal(first.begin(), first.end(), bytes.begin(),
                      [](int a, std::byte b) { return a == static_cast<int>(b); });
  };
  if (begins({0x89, 'P', 'N', 'G'})) return "image/png";
  if (begins({0xff, 0xd8, 0xff})) return "image/jpeg";
  return "";
}

std::optional<ReportPicture> read_picture(const Capture& capture, const FrameFile& frame,
                                          MemoryBudget& budget) {
  const auto file = capture.open_frame(frame);
  const std::string name = frame.file.filename().string();
  if (file->size() > kMostPictureBytes) {
    throw file_error(name, "", fmt::format("a picture of {}", format_bytes(file->size())));
  }
  ReportPicture picture;
  picture.held = budget.reserve(file->size(), "the pictures of the report");
  picture.data.bytes.resize(static_cast<size_t>(file->size()));
  file->read_at(0, picture.data.bytes);
  picture.type = picture_type(picture.data.bytes);
  if (picture.type.empty()) throw file_error(name, "", "no PNG or JPEG picture");
  picture.frame = frame.t;
  return picture;
}

/// Frames that were left out have no picture.
void drop_frames(OrderedJson& frames) {
  for (OrderedJson& frame : frames) frame = nullptr;
}

void add_data(std::vector<FigureBytes>& all, const std::vector<NamedBytes>& data) {
  for (const NamedBytes& each : data) all.push_back({each.name, each.bytes});
}

/// Leaves one piece out; false: there is none left.
bool drop_piece(ReportParts& parts, std::map<std::string, int64_t>& dropped) {
  if (!parts.figures.empty()) {
    parts.figures.pop_back();
    ++dropped["figures"];
    return true;
  }
  if (!parts.looks.empty()) {
    parts.looks.pop_back();
    ++dropped["larger maps with their films"];
    return true;
  }
  const auto drop = [&](auto& piece, const char* name) {
    piece.reset();
    ++dropped[name];
    return true;
  };
  if (parts.maps) return drop(parts.maps, "the small maps");
  if (!parts.pictures.empty()) {
    dropped["pictures of the video"] = std::ssize(parts.pictures);
    parts.pictures.clear();
    return true;
  }
  if (parts.words) return drop(parts.words, "the words over the frames");
  if (parts.sparsity) return drop(parts.sparsity, "the section on sparsity");
  return false;
}

}  // namespace

std::vector<ReportPicture> read_pictures(const Capture& capture, MemoryBudget& budget,
                                         std::vector<std::string>& problems) {
  std::map<int64_t, std::vector<const FrameFile*>> by_frame;
  for (const FrameFile& frame : capture.frames()) by_frame[frame.t].push_back(&frame);
  std::vector<ReportPicture> pictures;
  for (const auto& [t, files] : by_frame) {
    try {
      auto picture = read_picture(capture, *files[(files.size() - 1) / 2], budget);
      picture->data.name = fmt::format("picture-{}", pictures.size());
      pictures.push_back(std::move(*picture));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      problems.push_back(without_folders(error.what(), capture.path()));
    }
  }
  return pictures;
}

std::vector<int64_t> places_of_pictures(const std::vector<ReportPicture>& pictures) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (pictures[i].frame < 0 || pictures[i].frame > (1 << 20)) continue;
    const auto frame = static_cast<size_t>(pictures[i].frame);
    if (places.size() <= frame) places.resize(frame + 1, -1);
    places[frame] = static_cast<int64_t>(i);
  }
  return places;
}

ReportSection small_maps(const std::vector<MeasuredHead>& heads, std::vector<std::string>& lacks) {
  int64_t rows = 0, cols = 0;
  bool alike = true;
  for (const MeasuredHead& head : heads) {
    rows = std::max(rows, head.map.rows());
    cols = std::max(cols, head.map.cols());
    alike &= head.call->problem->query_tokens() == heads.front().call->problem->query_tokens() &&
             head.call->problem->key_tokens() == heads.front().call->problem->key_tokens();
  }
  ReportSection section;
  NamedBytes data{"maps", {}};
  std::vector<size_t> places;
  std::vector<double> low, high;
  for (size_t i = 0; i < heads.size(); ++i) {
    const CellMap& map = heads[i].map;
    const CodedMap coded = coded_map(map.values);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const int64_t from = r * map.rows() / rows * map.cols() + c * map.cols() / cols;
        data.bytes.push_back(coded.codes[static_cast<size_t>(from)]);
      }
    }
    places.push_back(i);
    low.push_back(coded.low);
    high.push_back(coded.high);
  }
  const AttentionProblem& first = *heads.front().call->problem;
  const OrderedJson none = OrderedJson::array();
  section.facts = {
      {"data", "maps"},
      {"rows", rows},
      {"cols", cols},
      {"heads", places},
      {"low", low},
      {"high", high},
      {"query_marks", alike ? marks_of(first.query_tokens(), heads.front().map.height) : none},
      {"key_marks", alike ? marks_of(first.key_tokens(), heads.front().map.width) : none}};
  section.data.push_back(std::move(data));
  if (!alike) {
    lacks.emplace_back(
        "heads have maps of several sizes: the small ones are drawn in one size, without marks");
  }
  return section;
}

OrderedJson ReportParts::joined_facts() const {
  OrderedJson joined = facts;
  joined["problems"] = problems;
  joined["lacks"] = lacks;
  if (maps) joined["maps"] = maps->facts;
  if (!looks.empty()) {
    OrderedJson& list = joined["looks"] = OrderedJson::array();
    for (const ReportLook& look : looks) {
      OrderedJson& json = list.emplace_back(look.facts);
      for (size_t k = 0; k < figures.size(); ++k) {
        if (figures[k]->figure.head == static_cast<int64_t>(look.head)) json["figure"] = k;
      }
      if (pictures.empty() && !json["film"].is_null()) drop_frames(json["film"]["frames"]);
    }
  }
  if (!pictures.empty()) {
    OrderedJson& list = joined["pictures"] = OrderedJson::array();
    for (const ReportPicture& picture : pictures) {
      list.push_back(
          {{"data", picture.data.name}, {"type", picture.type}, {"frame", picture.frame}});
    }
  }
  if (words) {
    joined["words"] = words->facts;
    if (pictures.empty() && joined["words"].contains("frames")) {
      drop_frames(joined["words"]["frames"]);
    }
  }
  if (sparsity) joined["sparsity"] = sparsity->facts;
  return joined;
}

ReportPage ReportParts::page(const OrderedJson& joined) const {
  ReportPage page{joined.at("title").get<std::string>(), joined, {}, {}, style};
  if (maps) add_data(page.data, maps->data);
  for (const ReportLook& look : looks) add_data(page.data, look.data);
  for (const ReportPicture& picture : pictures) {
    page.data.push_back({picture.data.name, picture.data.bytes});
  }
  if (words) add_data(page.data, words->data);
  if (sparsity) add_data(page.data, sparsity->data);
  for (const auto& figure : figures) page.figures.push_back(figure->figure);
  return page;
}

int64_t ReportParts::bytes() const {
  const OrderedJson joined = joined_facts();
  return report_bytes(page(joined));
}

void fit_page(ReportParts& parts, int64_t most, const std::string& option) {
  const std::vector<std::string> lacks = parts.lacks;
  std::map<std::string, int64_t> dropped;
  int64_t bytes = parts.bytes();
  while (bytes > most) {
    if (!drop_piece(parts, dropped)) {
      throw usage_error(fmt::format(
          "{}: a page of these heads has at least {} (choose fewer heads, or a larger size)",
          option, format_bytes(bytes)));
    }
    parts.lacks = lacks;
    for (const auto& [name, count] : dropped) {
      parts.lacks.push_back(fmt::format("left out for {}: {}{}", option,
                                        count > 1 ? fmt::format("{} ", count) : "", name));
    }
    bytes = parts.bytes();
  }
}

}  // namespace attnscope
