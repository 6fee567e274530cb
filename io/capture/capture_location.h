#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/capture/facts/capture_catalogue.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/capture/named_folder.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// A file of a folder that holds no call.
struct PassedOver {
  std::string note;
};

/// Where the calls of a capture stand, and what it says about itself as a whole. Of the calls'
/// files none is open but those that had to be to tell what they are.
struct CaptureLocation {
  std::filesystem::path path;                ///< without a slash at its end
  std::vector<std::filesystem::path> files;  ///< all that are part of it
  std::vector<FrameFile> frames;
  std::optional<NamedFolder> named;  ///< where the files were told by their names
  std::string extra;                 ///< JSON text; may be empty
  ForwardLog log;
  std::vector<std::variant<CaptureFile, NamedCall, PassedOver>> calls;
  std::vector<std::string> warnings, notes, unknown_keys;
};

/// The folder whose files a capture at `path` consists of; nothing where it is one tensor file.
std::optional<std::filesystem::path> capture_folder(const std::filesystem::path& path);

/// Tells what `path` is: a folder with capture.json, one of files in the capture's format or told
/// by their names (with `pattern` by those alone), or one tensor file, of one call or of several
/// that the names of its tensors tell. Throws Error(file) where it is no capture, Error(usage)
/// where a pattern is none or is given for a capture.json.
CaptureLocation locate_capture(const std::filesystem::path& path,
                               const std::optional<std::string>& pattern,
                               const ReadControl& control);

}  // namespace attnscope
