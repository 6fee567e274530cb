#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/relabel/relabel_plan.h"

namespace attnscope {

/// A new header of a safetensors file: its JSON, and the bytes that it takes with the spaces behind
/// it.
struct HeaderPatch {
  std::string file;          ///< below the capture's folder
  int64_t file_bytes = 0;    ///< of the file as it is
  int64_t header_bytes = 0;  ///< of the header as it is
  int64_t to_bytes = 0;      ///< of the new one; more than header_bytes where it has no room
  std::string header;        ///< the JSON of the new one
  bool is_shared = false;    ///< the file has other names (hard links), which keep the old header

  /// True where the new header is written over the old one; else the file is written anew.
  bool in_place() const { return to_bytes == header_bytes && !is_shared; }
};

/// Spaces that a header without room gets behind it, beside those up to a multiple of 8 bytes.
inline constexpr int64_t kHeaderRoom = 256;

/// The header that states the new labels of a call; nothing where the file states none of them and
/// is not of the capture format. Throws Error(file).
std::optional<HeaderPatch> header_patch(const std::filesystem::path& folder,
                                        const RelabelledCall& call);

/// The file beside PATH that is written first and then takes its name: nobody else's file.
std::filesystem::path relabel_part(const std::filesystem::path& path);

/// Does it, durably: in place, or in a file beside that takes the name. Nothing where it is done
/// already. Throws Error(file) where the file is neither as it was nor as it is to be.
void apply_header_patch(const std::filesystem::path& folder, const HeaderPatch& patch);

}  // namespace attnscope
