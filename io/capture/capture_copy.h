#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/capture/capture.h"
#include "io/capture/capture_writer.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Some calls of a capture, or some heads of them, that become a capture of their own.
struct CaptureCopy {
  const Capture* capture = nullptr;
  std::vector<SelectedCall> calls;
  bool values = true;  ///< V and the recorded output rows, where there are any
  /// Text tokens instead of those recorded: one list, or one a batch item of the copy.
  std::vector<std::vector<std::string>> tokens;
  /// Places of the calls that are written, where the copy is one part of several; all of them else.
  /// Facts of the whole in capture.json stay those of all calls.
  std::optional<std::vector<int64_t>> own = {};
  OrderedJson part = {};  ///< what capture.json says of that
  /// Pictures of the latent frames in their order, instead of those recorded.
  std::vector<std::filesystem::path> frames;

  /// Notes for a reader on what the copy leaves out or changes, one line each.
  std::vector<std::string> notes(const std::filesystem::path& out) const;
};

/// Bytes of all tensors of the copy. Throws Error(usage) for what cannot be recorded: a mask or
/// score that was asked for by option and is no fact, batch items of factorised attention that do
/// not make a whole, several calls or pictures for a single .safetensors file.
int64_t check_capture_copy(const CaptureCopy& copy, const std::filesystem::path& out);

/// Writes OUT.safetensors (one call) or a folder OUT with capture.json, a file a call and the
/// pictures, all tensors as [batch, head, token, channel]. Memory stays below a few MiB. It appears
/// under its name when it is complete; `force` replaces an earlier capture and nothing else, never
/// the one that is read. Pictures are copied that are some by their content, and no links in the
/// capture. Throws as write_synthetic_capture(), and Error(file) where what is read was changed.
void write_capture_copy(const CaptureCopy& copy, const std::filesystem::path& out,
                        const CopyControl& control);

}  // namespace attnscope
