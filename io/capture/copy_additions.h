#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attnscope {

/// Reads the text tokens of `file`: a JSON list of strings, a list of such lists, or one token a
/// line. Throws Error(file).
std::vector<std::vector<std::string>> read_token_file(const std::filesystem::path& file);

/// The pictures of a folder for `frames` latent frames: .png files by their names, in which numbers
/// count as numbers; one a latent frame, or those of the whole video (1 + n·(frames − 1) pictures,
/// of which the first of each latent frame is taken). Throws Error(file), Error(usage) with both
/// numbers where they do not fit.
std::vector<std::filesystem::path> frame_pictures(const std::filesystem::path& folder,
                                                  int64_t frames);

}  // namespace attnscope
