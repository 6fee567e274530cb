#include "io/plan_parts/merge_captures.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/capture/interrupted_relabel.h"
#include "io/files/file_text.h"
#include "io/files/input_set.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/files/strict_json.h"
#include "io/plan_parts/part_set.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// A part's capture.json.
struct CapturePart {
  fs::path folder;
  OrderedJson root;
};

OrderedJson read_root(const fs::path& folder) {
  refuse_interrupted_relabel(folder);
  const fs::path file = folder / kCatalogueName;
  const std::string text = read_file_text(file);
  parse_strict_json(text, file.string(), "");
  // As it stands, with its keys in their order.
  return OrderedJson::parse(text);
}

PartFacts capture_facts(const CapturePart& part) {
  const std::string file = (part.folder / kCatalogueName).string();
  const auto text = [&](const char* name) {
    return part.root.contains(name) && part.root[name].is_string()
               ? part.root[name].get<std::string>()
               : std::string();
  };
  return {part.folder,
          parse_export_part(text("shard"), text("plan_hash"),
                            part.root.value("part", OrderedJson()).dump(), file),
          ""};
}

/// The root of the whole: what parts say of themselves is left out.
OrderedJson whole_root(OrderedJson root) {
  for (const char* name : {"shard", "plan_hash", "part"}) root.erase(name);
  root["calls"] = OrderedJson::array();
  return root;
}

/// The plain names that a list of the root has.
std::vector<std::string> files_of(const CapturePart& part, const char* list) {
  std::vector<std::string> names;
  const OrderedJson entries = part.root.value(list, OrderedJson());
  for (const OrderedJson& entry : entries) {
    const bool has_name = entry.is_object() && entry.contains("file") && entry["file"].is_string();
    const std::string name = has_name ? entry["file"].get<std::string>() : "";
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
      throw file_error((part.folder / kCatalogueName).string(), list, "has no plain file name");
    }
    names.push_back(name);
  }
  return names;
}

class CaptureMerge {
 public:
  CaptureMerge(const fs::path& folder, bool copy, const MergeControl& control)
      : folder_(folder), copy_(copy), control_(control) {}

  int64_t bytes() const { return bytes_; }

  void add(const CapturePart& part, const std::string& name) {
    if (control_.stop.stop_requested()) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
    }
    const fs::path from = part.folder / name;
    if (!names_.insert(name).second) {
      throw file_error(from.string(), "", "has the name of a call of another part");
    }
    const auto file = InputSet(part.folder).open_unlinked(from);
    std::error_code error;
    if (!copy_) fs::create_hard_link(from, folder_ / name, error);
    if (copy_ || error) copy_file(*file, folder_ / name);
    bytes_ += file->size();
    if (control_.progress) control_.progress(bytes_, 0);
  }

 private:
  static void copy_file(const InputFile& from, const fs::path& to) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    StagedFile file(to, false);
    std::vector<std::byte> piece;
    for (int64_t at = 0; at < from.size(); at += kPiece) {
      piece.resize(static_cast<size_t>(std::min(kPiece, from.size() - at)));
      from.read_at(at, piece);
      file.append(piece);
    }
    from.require_unchanged();
    file.commit();
  }

  const fs::path& folder_;
  const bool copy_;
  const MergeControl& control_;
  std::set<std::string> names_;
  int64_t bytes_ = 0;
};

/// Its lock ends with it: nothing else may be left in the folder.
void write_text(const fs::path& path, const std::string& text) {
  StagedFile file(path, false);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace

bool is_part_of_capture(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / kCatalogueName, error)) return false;
  const OrderedJson root = read_root(folder);
  return root.is_object() && root.contains("shard");
}

MergeResult merge_captures(const std::vector<fs::path>& parts, const fs::path& out, bool copy,
                           const TableMerge& how, bool force, const MergeControl& control) {
  std::vector<CapturePart> read;
  std::vector<PartFacts> facts;
  for (const fs::path& folder : parts) {
    read.push_back({folder, read_root(folder)});
    facts.push_back(capture_facts(read.back()));
  }
  const std::vector<size_t> order = order_of_parts(facts, how.mixed);
  CaptureFolder::check_target(out, force, parts);
  if (how.dry_run) return {};
  CaptureFolder folder(out, force);
  CaptureMerge merge(folder.part_path(), copy, control);
  OrderedJson root = whole_root(read[order.front()].root);
  for (const std::string& name : files_of(read[order.front()], "frames")) {
    merge.add(read[order.front()], name);
  }
  for (const size_t i : order) {
    for (const std::string& name : files_of(read[i], "calls")) merge.add(read[i], name);
    for (const OrderedJson& call : read[i].root["calls"]) root["calls"].push_back(call);
  }
  const std::string text = json_text(root, 2) + "\n";
  write_text(folder.part_path() / kCatalogueName, text);
  Capture::open(folder.part_path());
  folder.commit();
  MergeResult result;
  result.bytes_written = merge.bytes();
  return result;
}

}  // namespace attnscope
