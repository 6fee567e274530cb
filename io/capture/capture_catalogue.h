#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/opened_call.h"

namespace attnscope {

/// A picture of a latent frame.
struct FrameFile {
  std::filesystem::path file;
  int64_t t = 0;
};

/// What a capture.json says.
struct CaptureCatalogue {
  std::filesystem::path file;
  std::vector<FrameFile> frames;
  std::string extra;  ///< as JSON text; may be empty
  std::vector<CaptureFile> calls;
  std::vector<std::string> notes, unknown_keys;
};

/// Reads FOLDER/capture.json; of the files that it names it opens none. Throws Error(file) where it
/// is malformed or names files outside the folder.
CaptureCatalogue read_catalogue(const std::filesystem::path& folder);

}  // namespace attnscope
