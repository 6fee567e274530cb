#include "io/capture/facts/capture_catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/inner_path.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/files/read_progress.h"
#include "io/files/strict_json.h"

namespace attnscope {
namespace {

/// A call of a long run takes 300 bytes and a dozen values, and there are tens of thousands.
constexpr int64_t kMaxCatalogueBytes = 64 << 20;
constexpr int64_t kMaxCatalogueValues = 2 << 20;
constexpr size_t kMaxListed = 1 << 17;

/// A file name that capture.json gives: plain, and below the capture's folder.
std::filesystem::path listed_path(const Json& entry, const std::filesystem::path& folder,
                                  const std::string& file, const std::string& where) {
  if (!entry.is_object() || !entry.contains("file") || !entry["file"].is_string()) {
    throw file_error(file, where, "expected an object with a string \"file\"");
  }
  const std::string text = entry["file"].get<std::string>();
  if (const auto path = inner_path(folder, text)) return *path;
  throw file_error(file, where,
                   "the file name must be relative and inside the capture (got \"" + text + "\")");
}

/// The whole of capture.json, its format checked.
Json read_root(const InputFile& file, int64_t memory) {
  const std::string name = file.path().string();
  if (file.size() > kMaxCatalogueBytes) {
    throw file_error(name, "",
                     "is too large (got " + std::to_string(file.size()) + " bytes, limit " +
                         std::to_string(kMaxCatalogueBytes) + ")");
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  Json root = parse_strict_json(text, name, "", {.values = kMaxCatalogueValues, .memory = memory});
  if (!root.is_object()) throw file_error(name, "", "expected a JSON object");
  if (!root.contains("format")) throw file_error(name, "", "the key \"format\" is missing");
  check_capture_format(root["format"], name);
  return root;
}

/// The list of this name in capture.json.
const Json& listed(const Json& root, const char* key, const std::string& name) {
  const Json& list = root[key];
  if (!list.is_array()) throw file_error(name, key, "expected a list");
  if (list.size() > kMaxListed) {
    throw file_error(name, key,
                     "lists too many files (got " + std::to_string(list.size()) + ", limit " +
                         std::to_string(kMaxListed) + ")");
  }
  return list;
}

/// The pictures that capture.json lists.
struct FrameList {
  std::vector<FrameFile> frames;
  std::vector<std::string> warnings;  ///< of those that are left out
  std::vector<std::string> notes;     ///< of those that are missing
  std::vector<std::string> unknown_keys;
};

/// The error that keeps a picture from being read; empty where there is none.
std::string frame_fault(const FrameFile& frame, const InputSet& files) {
  try {
    files.open_unlinked(frame.file);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

FrameList read_frames(const Json& root, const std::filesystem::path& folder,
                      const std::string& name, const InputSet& files) {
  FrameList list;
  if (!root.contains("frames")) return list;
  const Json& entries = listed(root, "frames", name);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Json& entry = entries[i];
    const std::string where = "frames[" + std::to_string(i) + "]";
    FrameFile frame{listed_path(entry, folder, name, where), 0};
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
    const std::string fault = frame_fault(frame, files);
    if (!fault.empty() && std::filesystem::is_regular_file(frame.file, error)) {
      list.warnings.push_back(name + ": " + where + " is left out: " + fault);
      continue;
    }
    if (!fault.empty()) {
      list.notes.push_back(name + ": " + where + ": " + frame.file.string() + " is missing");
    }
    list.frames.push_back(std::move(frame));
  }
  return list;
}

/// Why a recorder has no call to list; empty where it does not tell.
std::string why_none(const ForwardLog& log) {
  constexpr size_t kMostReasons = 3;
  const std::vector<Refusal> all = refusals(log);
  if (all.empty()) return "";
  std::string text = " (got none): the recorder refused ";
  for (size_t i = 0; i < std::min(all.size(), kMostReasons); ++i) {
    text += (i == 0 ? "" : "; ") + all[i].count_text() + ": " + one_line(all[i].why);
  }
  if (all.size() > kMostReasons) {
    text += "; and others for " + std::to_string(all.size() - kMostReasons) + " more reasons";
  }
  return text;
}

}  // namespace

CaptureCatalogue read_catalogue(const std::filesystem::path& folder, InputSet& files,
                                const ReadControl& control) {
  CaptureCatalogue catalogue;
  catalogue.file = folder / kCatalogueName;
  const std::string name = catalogue.file.string();
  const auto file =
      control.growing ? files.open_unlinked(catalogue.file) : files.open(catalogue.file);
  const auto root = std::make_shared<const Json>(read_root(*file, control.memory));
  if (root->contains("extra")) catalogue.extra = (*root)["extra"].dump();
  FrameList list = read_frames(*root, folder, name, files);
  catalogue.frames = std::move(list.frames);
  catalogue.warnings = std::move(list.warnings);
  catalogue.notes = std::move(list.notes);
  catalogue.unknown_keys = std::move(list.unknown_keys);
  catalogue.log = read_forward_log(*root, name);
  catalogue.unknown_keys.insert(catalogue.unknown_keys.end(), catalogue.log.unknown_keys.begin(),
                                catalogue.log.unknown_keys.end());
  for (const auto& [key, value] : root->items()) {
    const std::set<std::string> known{"format", "model",    "prompt", "frames",
                                      "extra",  "calls",    "shard",  "plan_hash",
                                      "part",   "forwards", "refused"};
    if (known.count(key) == 0) {
      catalogue.unknown_keys.push_back(one_line("capture.json key " + key));
    }
  }
  if (root->contains("shard") && (*root)["shard"].is_string()) {
    catalogue.notes.push_back(name + ": is part " + one_line((*root)["shard"].get<std::string>()) +
                              " of a capture (attnscope merge joins the parts)");
  }
  if (!root->contains("calls") || !(*root)["calls"].is_array() || (*root)["calls"].empty()) {
    throw file_error(name, "calls", "expected a list of calls" + why_none(catalogue.log));
  }
  const Json& calls = listed(*root, "calls", name);
  for (size_t i = 0; i < calls.size(); ++i) {
    catalogue.calls.push_back(
        {listed_path(calls[i], folder, name, "calls[" + std::to_string(i) + "]"),
         CaptureFile::Listing{name, root, i}});
  }
  return catalogue;
}

}  // namespace attnscope
