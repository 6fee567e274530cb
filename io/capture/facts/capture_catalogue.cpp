#include "io/capture/facts/capture_catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/input_file.h"
#include "io/files/strict_json.h"

namespace attnscope {
namespace {

/// A catalogue of every call of a long run stays far below this.
constexpr int64_t kMaxCatalogueBytes = 256 << 20;
constexpr int64_t kMaxCatalogueValues = 4 << 20;

/// A file name that capture.json gives: plain, and below the capture's folder.
std::filesystem::path inner_path(const nlohmann::json& entry, const std::filesystem::path& folder,
                                 const std::string& file, const std::string& where) {
  if (!entry.is_object() || !entry.contains("file") || !entry["file"].is_string()) {
    throw file_error(file, where, "expected an object with a string \"file\"");
  }
  const std::string text = entry["file"].get<std::string>();
  const std::filesystem::path name(text);
  const bool climbs = std::find(name.begin(), name.end(), "..") != name.end();
  if (text.empty() || name.is_absolute() || climbs || text.find('\0') != std::string::npos) {
    throw file_error(
        file, where,
        "the file name must be relative and inside the capture (got \"" + text + "\")");
  }
  return folder / name;
}

/// The whole of capture.json, its format checked.
nlohmann::json read_root(const std::filesystem::path& path) {
  const std::string name = path.string();
  const InputFile file(path);
  if (file.size() > kMaxCatalogueBytes) {
    throw file_error(name, "",
                     "is too large (got " + std::to_string(file.size()) + " bytes, limit " +
                         std::to_string(kMaxCatalogueBytes) + ")");
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  nlohmann::json root = parse_strict_json(text, name, "", kMaxCatalogueValues);
  if (!root.is_object()) throw file_error(name, "", "expected a JSON object");
  if (!root.contains("format")) throw file_error(name, "", "the key \"format\" is missing");
  check_capture_format(root["format"], name);
  return root;
}

/// The pictures that capture.json lists.
struct FrameList {
  std::vector<FrameFile> frames;
  std::vector<std::string> notes;  ///< of those that are missing
  std::vector<std::string> unknown_keys;
};

FrameList read_frames(const nlohmann::json& root, const std::filesystem::path& folder,
                      const std::string& name) {
  FrameList list;
  if (!root.contains("frames")) return list;
  if (!root["frames"].is_array()) throw file_error(name, "frames", "expected a list");
  for (size_t i = 0; i < root["frames"].size(); ++i) {
    const nlohmann::json& entry = root["frames"][i];
    const std::string where = "frames[" + std::to_string(i) + "]";
    FrameFile frame{inner_path(entry, folder, name, where), 0};
    if (!entry.contains("t") || !entry["t"].is_number_unsigned()) {
      throw file_error(name, where, "expected \"t\", the latent frame, a whole number from 0");
    }
    frame.t = entry["t"].get<int64_t>();
    for (const auto& [key, value] : entry.items()) {
      if (key != "file" && key != "t") {
        list.unknown_keys.push_back(one_line("capture.json key " + where + "." + key));
      }
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(frame.file, error)) {
      list.notes.push_back(name + ": " + where + ": " + frame.file.string() + " is missing");
    }
    list.frames.push_back(std::move(frame));
  }
  return list;
}

}  // namespace

CaptureCatalogue read_catalogue(const std::filesystem::path& folder) {
  CaptureCatalogue catalogue;
  catalogue.file = folder / "capture.json";
  const std::string name = catalogue.file.string();
  const auto root = std::make_shared<const nlohmann::json>(read_root(catalogue.file));
  if (root->contains("extra")) catalogue.extra = (*root)["extra"].dump();
  FrameList list = read_frames(*root, folder, name);
  catalogue.frames = std::move(list.frames);
  catalogue.notes = std::move(list.notes);
  catalogue.unknown_keys = std::move(list.unknown_keys);
  for (const auto& [key, value] : root->items()) {
    const std::set<std::string> known{"format", "model", "prompt", "frames", "extra", "calls"};
    if (known.count(key) == 0) {
      catalogue.unknown_keys.push_back(one_line("capture.json key " + key));
    }
  }
  if (!root->contains("calls") || !(*root)["calls"].is_array() || (*root)["calls"].empty()) {
    throw file_error(name, "calls", "expected a list of calls");
  }
  const nlohmann::json& calls = (*root)["calls"];
  for (size_t i = 0; i < calls.size(); ++i) {
    catalogue.calls.push_back(
        {inner_path(calls[i], folder, name, "calls[" + std::to_string(i) + "]"),
         CaptureFile::Listing{name, root, i}});
  }
  return catalogue;
}

}  // namespace attnscope
