#include "io/capture/capture_location.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/interrupted_relabel.h"
#include "io/capture/named_tensors.h"
#include "io/capture/rank_folders.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

CaptureLocation locate_catalogue(const fs::path& folder, const ReadControl& control) {
  CaptureCatalogue catalogue = read_catalogue(folder, *control.files, control);
  CaptureLocation location;
  location.files = {catalogue.file};
  for (const FrameFile& frame : catalogue.frames) location.files.push_back(frame.file);
  for (CaptureFile& call : catalogue.calls) {
    location.files.push_back(call.path);
    location.calls.emplace_back(std::move(call));
  }
  location.frames = std::move(catalogue.frames);
  location.extra = std::move(catalogue.extra);
  location.log = std::move(catalogue.log);
  location.warnings = std::move(catalogue.warnings);
  location.notes = std::move(catalogue.notes);
  location.unknown_keys = std::move(catalogue.unknown_keys);
  return location;
}

/// The paths of a folder's entries, ascending.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    paths.push_back(item->path());
  }
  if (error) {
    throw file_error(folder.string(), "", "cannot be read: " + errno_text(error.value()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Every safetensors file of the folder that says that it is a capture; no calls where none does.
CaptureLocation locate_formatted(const fs::path& folder, const ReadControl& control) {
  CaptureLocation location;
  std::optional<Error> first_bad;
  for (const fs::path& path : files_of(folder)) {
    if (path.extension() != ".safetensors") continue;
    std::shared_ptr<const TensorFile> file;
    try {
      file = open_tensor_file(path, control);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::file) throw;
      if (!first_bad) first_bad = error;
      // Opened once more as a call, it is told and left out.
      location.calls.emplace_back(CaptureFile{path});
      continue;
    }
    if (capture_format(file->metadata()).empty()) {
      location.calls.emplace_back(PassedOver{path.string() + ": left out, it has no format \"" +
                                             std::string(kCaptureFormat) + "\""});
      continue;
    }
    location.files.push_back(path);
    location.calls.emplace_back(CaptureFile{path, {}, std::move(file)});
  }
  if (!location.files.empty()) return location;
  if (first_bad) throw *first_bad;
  location.calls.clear();
  return location;
}

/// The calls that names of `what` ("file", "tensor") in `path` told; none where they told none.
CaptureLocation named_location(const fs::path& path, const std::string& what, NamedFiles found,
                               const std::optional<std::string>& pattern) {
  if (pattern && found.calls.empty()) {
    throw file_error(path.string(), "",
                     "no " + what + " has a name like --pattern " + *pattern + " (it has " +
                         (found.left_out.empty() ? "none" : first_names(found.left_out, what)) +
                         ")");
  }
  CaptureLocation location;
  if (found.calls.empty()) return location;
  location.named = summary_of(found, pattern.has_value());
  location.notes.push_back(path.string() + ": " + what + "s told by their names, as " +
                           found.pattern);
  if (!found.left_out.empty()) {
    location.notes.push_back(path.string() + ": left out: " + first_names(found.left_out, what));
  }
  for (NamedCall& call : found.calls) location.calls.emplace_back(std::move(call));
  return location;
}

/// Files that are told by their names; no calls where no pattern fits.
CaptureLocation locate_named(const fs::path& folder, const std::optional<std::string>& pattern) {
  NamedFiles found = find_named_files(folder, pattern);
  std::vector<fs::path> files;
  for (const NamedCall& call : found.calls) {
    for (const auto& [role, parts] : call.parts) {
      for (const NamedPart& part : parts) files.push_back(part.path);
    }
  }
  CaptureLocation location = named_location(folder, "file", std::move(found), pattern);
  location.files = std::move(files);
  return location;
}

/// One tensor file: one call, or several that are told by the names of their tensors.
CaptureLocation locate_file(const fs::path& path, const std::optional<std::string>& pattern,
                            const ReadControl& control) {
  auto file = open_tensor_file(path, control);
  if (file->keys() == std::vector<std::string>{""}) {
    throw file_error(
        path.string(), "",
        "is one bare tensor, no capture: give --q FILE and --k FILE, or the folder that "
        "they stand in");
  }
  CaptureLocation location;
  if (pattern || (capture_format(file->metadata()).empty() && !tell_call(file->keys()))) {
    location = named_location(path, "tensor", find_named_tensors(file, pattern), pattern);
  }
  location.files = file->files();
  if (location.calls.empty()) location.calls.emplace_back(CaptureFile{path, {}, std::move(file)});
  return location;
}

/// The folder's index of safetensors files; no calls where it has none.
CaptureLocation locate_indexed(const fs::path& folder, const ReadControl& control) {
  std::vector<fs::path> found;
  for (const fs::path& path : files_of(folder)) {
    if (path.filename().string().ends_with(".safetensors.index.json")) found.push_back(path);
  }
  if (found.empty()) return {};
  if (found.size() > 1) {
    throw file_error(folder.string(), "",
                     "has " + std::to_string(found.size()) + " indices of safetensors files, " +
                         found[0].filename().string() + " and " + found[1].filename().string() +
                         ": name one of them instead of the folder");
  }
  return locate_file(found.front(), std::nullopt, control);
}

CaptureLocation locate_in_folder(const fs::path& folder, const std::optional<std::string>& pattern,
                                 const ReadControl& control) {
  if (pattern) return locate_named(folder, pattern);
  std::error_code error;
  if (fs::exists(folder / kCatalogueName, error)) return locate_catalogue(folder, control);
  CaptureLocation location = locate_formatted(folder, control);
  if (location.calls.empty()) location = locate_indexed(folder, control);
  if (location.calls.empty()) location = locate_named(folder, pattern);
  if (!location.calls.empty()) return location;
  const std::vector<RankFolder> ranks = rank_folders(folder);
  if (!ranks.empty()) {
    throw file_error(folder.string(), "",
                     "holds the parts that " + std::to_string(ranks.size()) +
                         " processes recorded (" + ranks.front().path.filename().string() +
                         " …): attnscope convert --stitch " + folder.string() +
                         " -o OUT joins them");
  }
  throw file_error(folder.string(), "",
                   "is no capture: it has no capture.json, no safetensors file with format \"" +
                       std::string(kCaptureFormat) +
                       "\", and no files whose names say what they are (--pattern tells)");
}

/// Of a path that is not there: also of a place on another machine, which the window alone reads.
std::string missing_text(const std::string& path) {
  const std::string text = "there is no such file or folder";
  if (path.starts_with("ssh://")) {
    return text + ": ssh:// is for `attnscope view`, other commands run on that machine";
  }
  // As scp writes it.
  const size_t colon = path.find(':'), at = path.find('@');
  if (colon == std::string::npos || at > colon || path.find('/') < colon) return text;
  return text + ": on another machine it is `attnscope view ssh://" + path.substr(0, colon) +
         "/PATH`";
}

CaptureLocation locate_no_folder(const fs::path& path, const std::optional<std::string>& pattern,
                                 const ReadControl& control) {
  std::error_code error;
  if (path.filename() == kCatalogueName) {
    if (pattern) throw usage_error("--pattern is for what has no " + std::string(kCatalogueName));
    return locate_catalogue(path.parent_path(), control);
  }
  if (!fs::exists(path, error)) {
    throw file_error(path.string(), "", missing_text(path.string()));
  }
  return locate_file(path, pattern, control);
}

}  // namespace

std::optional<fs::path> capture_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  if (path.filename() == kCatalogueName) return path.parent_path();
  return std::nullopt;
}

CaptureLocation locate_capture(const fs::path& path, const std::optional<std::string>& pattern,
                               const ReadControl& control) {
  std::error_code error;
  if (const auto folder = capture_folder(path)) refuse_interrupted_relabel(*folder);
  CaptureLocation location = fs::is_directory(path, error)
                                 ? locate_in_folder(path, pattern, control)
                                 : locate_no_folder(path, pattern, control);
  // "dump/" and "dump" are the same capture.
  location.path = path.has_filename() ? path : path.parent_path();
  return location;
}

}  // namespace attnscope
