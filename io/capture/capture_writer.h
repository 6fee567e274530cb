#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "core/problem/attention_problem.h"
#include "io/capture/capture.h"
#include "io/files/input_file.h"
#include "io/files/json_types.h"
#include "io/tensors/safetensors_writer.h"

namespace attnscope {

class InputSet;

struct CopyControl {
  bool force = false;
  std::stop_token stop{};
  std::function<void(int64_t bytes)> progress{};  ///< bytes of tensors written so far
};

/// One call on its way to a file of its own.
struct CallToWrite {
  CallId id;
  std::string branch;  ///< that its file is named by
  OrderedJson facts;   ///< with their format
  std::vector<TensorToWrite> tensors;

  std::string file_name() const;
  /// Of all tensors. Throws Error(usage) where no number holds them.
  int64_t bytes() const;
};

/// A picture of a latent frame on its way into a folder.
struct PictureToWrite {
  std::shared_ptr<const InputFile> file;
  int64_t t = 0;
};

/// The pictures of a capture that are there.
std::vector<PictureToWrite> recorded_pictures(const Capture& capture);

/// The content of a folder: capture.json without `frames` and `calls`, pictures, and `count` calls,
/// of which only the one that is written is held.
struct FolderToWrite {
  OrderedJson root;
  std::vector<PictureToWrite> pictures;
  size_t count = 0;
  std::function<CallToWrite(size_t)> call;
};

/// Writes calls as captures: memory stays below a few MiB, and nothing has its name before it is
/// complete. Throws Error(interrupted) soon after a stop is requested, Error(file) where one of the
/// `inputs` that it is made of was changed. Not thread-safe.
class CaptureWriter {
 public:
  using Check = std::function<void(const std::filesystem::path& part)>;

  /// `check`, where there is one, is called with the complete file or folder before it gets its
  /// name.
  CaptureWriter(const CopyControl& control, std::vector<std::shared_ptr<const InputSet>> inputs,
                Check check = {})
      : control_(control), inputs_(std::move(inputs)), check_(std::move(check)) {}

  void write_file(const CallToWrite& call, const std::filesystem::path& out);
  void write_folder(const FolderToWrite& folder, const std::filesystem::path& out);

 private:
  void write_call(const CallToWrite& call, StagedFile& file);

  const CopyControl& control_;
  std::vector<std::shared_ptr<const InputSet>> inputs_;
  Check check_;
  int64_t written_ = 0;
};

}  // namespace attnscope
