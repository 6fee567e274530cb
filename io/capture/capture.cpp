#include "io/capture/capture.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "io/capture/call_builder.h"
#include "io/capture/call_facts.h"
#include "io/capture/call_tensors.h"
#include "io/capture/fact_guess.h"
#include "io/capture/name_pattern.h"
#include "io/capture/named_calls.h"
#include "io/capture/packed_sequences.h"
#include "io/files/input_file.h"
#include "io/files/strict_json.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {
namespace {

constexpr std::string_view kFormat = "attnscope-capture/1";
/// A catalogue of every call of a long run stays far below this.
constexpr int64_t kMaxCatalogueBytes = 256 << 20;
constexpr int64_t kMaxCatalogueValues = 4 << 20;

void check_format(const nlohmann::json& format, const std::string& file) {
  if (format == kFormat) return;
  throw file_error(file, "format",
                   "expected \"" + std::string(kFormat) + "\" (got " + format.dump() + ")");
}

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

/// Collects the calls of one capture.
class CaptureReader {
 public:
  explicit CaptureReader(const FactOverrides& overrides) : overrides_(overrides) {}

  void add_call(const std::filesystem::path& path, const nlohmann::json* entry,
                const nlohmann::json* root, const std::string& catalogue) {
    const auto file = open_tensor_file(path);
    files.push_back(path);
    CallFacts facts(path.string());
    const auto& metadata = file->metadata();
    if (metadata.count("format") != 0) check_format(metadata.at("format"), path.string());
    facts.add_metadata(metadata, path.string());
    if (entry != nullptr) facts.add_entry(*entry, catalogue);
    if (root != nullptr) facts.add_shared(*root, catalogue);
    std::vector<std::string> unknown, used;
    const bool bare = metadata.count("format") == 0 && entry == nullptr;
    CallTensors tensors =
        bare ? usual_tensors(*file, unknown, used) : format_tensors(*file, unknown);
    apply_packed_options(tensors, overrides_, notes);
    if (bare) {
      notes.push_back(path.string() + ": has no format \"" + std::string(kFormat) +
                      "\": taken as one call for its tensors " + used[0] + " and " + used[1]);
      guess_facts(facts, tensors, overrides_, notes);
    }
    CallEntry call = build_call(std::move(facts), tensors, overrides_, notes);
    call.file = path;
    call.unknown_keys.insert(call.unknown_keys.end(), unknown.begin(), unknown.end());
    check_unique(call);
    calls.push_back(std::move(call));
  }

  void read_catalogue(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "capture.json";
    const std::string name = path.string();
    const InputFile file(path);
    if (file.size() > kMaxCatalogueBytes) {
      throw file_error(name, "",
                       "is too large (got " + std::to_string(file.size()) + " bytes, limit " +
                           std::to_string(kMaxCatalogueBytes) + ")");
    }
    std::string text(static_cast<size_t>(file.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    const nlohmann::json root = parse_strict_json(text, name, "", kMaxCatalogueValues);
    if (!root.is_object()) throw file_error(name, "", "expected a JSON object");
    if (!root.contains("format")) throw file_error(name, "", "the key \"format\" is missing");
    check_format(root["format"], name);
    files.push_back(path);
    if (root.contains("extra")) extra = root["extra"].dump();
    read_frames(root, folder, name);
    for (const auto& [key, value] : root.items()) {
      const std::set<std::string> known{"format", "model", "prompt", "frames", "extra", "calls"};
      if (known.count(key) == 0) unknown_keys.push_back(one_line("capture.json key " + key));
    }
    if (!root.contains("calls") || !root["calls"].is_array() || root["calls"].empty()) {
      throw file_error(name, "calls", "expected a list of calls");
    }
    for (size_t i = 0; i < root["calls"].size(); ++i) {
      const nlohmann::json& entry = root["calls"][i];
      add_call(inner_path(entry, folder, name, "calls[" + std::to_string(i) + "]"), &entry, &root,
               name);
    }
  }

  /// A folder without capture.json: every safetensors file that says that it is a capture.
  void read_folder(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    for (std::filesystem::directory_iterator item(folder, error), end; !error && item != end;
         item.increment(error)) {
      if (item->path().extension() == ".safetensors") paths.push_back(item->path());
    }
    if (error) {
      throw file_error(folder.string(), "", "cannot be read: " + errno_text(error.value()));
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      if (open_tensor_file(path)->metadata().count("format") == 0) {
        notes.push_back(path.string() + ": left out, it has no format \"" + std::string(kFormat) +
                        "\"");
        continue;
      }
      add_call(path, nullptr, nullptr, "");
    }
    if (!calls.empty()) return;
    notes.clear();  // about the very files that may be told by their names
    if (read_named(folder)) return;
    throw file_error(folder.string(), "",
                     "is no capture: it has no capture.json, no safetensors file with format \"" +
                         std::string(kFormat) +
                         "\", and no files whose names say what they are (--pattern tells)");
  }

  /// A folder of tensor files that are told by their names; false where no pattern fits.
  bool read_named(const std::filesystem::path& folder) {
    const NamedFiles found = find_named_files(folder, overrides_.pattern);
    if (overrides_.pattern && found.calls.empty()) {
      throw file_error(folder.string(), "",
                       "no file has a name like --pattern " + *overrides_.pattern + " (it has " +
                           (found.left_out.empty() ? "none" : first_names(found.left_out)) + ")");
    }
    if (found.calls.empty()) return false;
    named_folder = summary_of(found, overrides_.pattern.has_value());
    notes.push_back(folder.string() + ": files told by their names, as " + found.pattern);
    if (!found.left_out.empty()) {
      notes.push_back(folder.string() + ": left out: " + first_names(found.left_out));
    }
    for (const NamedCall& named : found.calls) {
      for (const auto& [role, parts] : named.files) {
        for (const auto& part : parts) files.push_back(part.second);
      }
      CallEntry call = build_named_call(named, overrides_, notes);
      check_unique(call, ", by the pattern " + found.pattern +
                             ": calls are told apart by {step}, {layer}, {branch} and {kind}");
      calls.push_back(std::move(call));
    }
    return true;
  }

  /// Ascending by step, layer, branch and kind.
  void sort_calls() {
    const auto key = [](const CallEntry& c) {
      return std::tie(c.id.step, c.id.layer, c.id.branches, c.id.kind);
    };
    std::stable_sort(calls.begin(), calls.end(),
                     [&](const CallEntry& a, const CallEntry& b) { return key(a) < key(b); });
  }

  std::string extra;
  std::optional<NamedFolder> named_folder;
  std::vector<std::filesystem::path> files;
  std::vector<FrameFile> frames;
  std::vector<CallEntry> calls;
  std::vector<std::string> notes, unknown_keys;

 private:
  void read_frames(const nlohmann::json& root, const std::filesystem::path& folder,
                   const std::string& name) {
    if (!root.contains("frames")) return;
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
          unknown_keys.push_back(one_line("capture.json key " + where + "." + key));
        }
      }
      files.push_back(frame.file);
      std::error_code error;
      if (!std::filesystem::is_regular_file(frame.file, error)) {
        notes.push_back(name + ": " + where + ": " + frame.file.string() + " is missing");
      }
      frames.push_back(std::move(frame));
    }
  }

  void check_unique(const CallEntry& call, const std::string& hint = "") {
    const std::set<std::string> branches(call.id.branches.begin(), call.id.branches.end());
    for (const std::string& branch : branches) {
      const auto key = std::tuple(call.id.step, call.id.layer, branch, call.id.kind);
      const auto [known, fresh] = seen_.emplace(key, call.file.string());
      if (fresh) continue;
      throw file_error(call.file.string(), "",
                       "step " + std::to_string(call.id.step) + ", layer " +
                           std::to_string(call.id.layer) + ", branch " + branch + ", kind " +
                           std::string(kind_name(call.id.kind)) + " is also in " + known->second +
                           hint);
    }
  }

  const FactOverrides& overrides_;
  std::map<std::tuple<int64_t, int64_t, std::string, CallKind>, std::string> seen_;
};

}  // namespace

Capture Capture::open(const std::filesystem::path& path, const FactOverrides& overrides) {
  CaptureReader reader(overrides);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (overrides.pattern) {
      reader.read_named(path);
    } else if (std::filesystem::exists(path / "capture.json", error)) {
      reader.read_catalogue(path);
    } else {
      reader.read_folder(path);
    }
  } else if (overrides.pattern) {
    throw usage_error("--pattern is for folders (" + path.string() + " is none)");
  } else if (path.filename() == "capture.json") {
    reader.read_catalogue(path.parent_path());
  } else if (!std::filesystem::exists(path, error)) {
    throw file_error(path.string(), "", "there is no such file or folder");
  } else if (open_tensor_file(path)->keys() == std::vector<std::string>{""}) {
    throw file_error(
        path.string(), "",
        "is one bare tensor, no capture: give --q FILE and --k FILE, or the folder that "
        "they stand in");
  } else {
    reader.add_call(path, nullptr, nullptr, "");
  }
  reader.sort_calls();
  Capture capture;
  // "dump/" and "dump" are the same capture.
  capture.path_ = path.has_filename() ? path : path.parent_path();
  capture.files_ = std::move(reader.files);
  add_option_files(overrides, capture.files_);
  capture.extra_ = std::move(reader.extra);
  capture.frames_ = std::move(reader.frames);
  capture.named_ = std::move(reader.named_folder);
  capture.calls_ = std::move(reader.calls);
  // What is guessed of many calls alike is told once.
  std::set<std::string> told;
  for (const std::string& note : reader.notes) {
    if (told.insert(note).second) capture.notes_.push_back(one_line(note));
  }
  capture.unknown_keys_ = std::move(reader.unknown_keys);
  return capture;
}

}  // namespace attnscope
