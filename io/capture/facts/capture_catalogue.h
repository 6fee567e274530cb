#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/capture/facts/forward_log.h"
#include "io/files/json_types.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

class InputSet;
struct ReadControl;

/// A picture of a latent frame.
struct FrameFile {
  std::filesystem::path file;
  int64_t t = 0;
  friend bool operator==(const FrameFile&, const FrameFile&) = default;
};

/// A file that holds a call of its own.
struct CaptureFile {
  /// The file's entry in capture.json: calls[index] of `root`.
  struct Listing {
    std::string catalogue;  ///< the path of capture.json
    std::shared_ptr<const Json> root;
    size_t index = 0;
  };
  std::filesystem::path path;
  std::optional<Listing> listing = {};
  /// The file, where it had to be opened to tell what it is; null: not yet.
  std::shared_ptr<const TensorFile> opened = nullptr;
};

/// The content of a capture.json.
struct CaptureCatalogue {
  std::filesystem::path file;
  std::vector<FrameFile> frames;
  std::string extra;  ///< as JSON text; may be empty
  ForwardLog log;
  std::vector<CaptureFile> calls;
  std::vector<std::string> warnings;  ///< of what is left out
  std::vector<std::string> notes, unknown_keys;
};

constexpr const char* kCatalogueName = "capture.json";

/// Reads FOLDER/capture.json, as one of `files` unless the capture is growing, in `control.memory`
/// bytes; of the calls' files that it names it opens none. Pictures that are links, or stand behind
/// one, are left out. Throws Error(file) where it is malformed or names files outside the folder,
/// Error(resource) where the memory does not suffice.
CaptureCatalogue read_catalogue(const std::filesystem::path& folder, InputSet& files,
                                const ReadControl& control);

}  // namespace attnscope
