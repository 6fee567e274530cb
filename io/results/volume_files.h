#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attnscope {

/// Attention of one query (or the mean of several) of one head, over the sequence.
struct QueryVolume {
  std::string label;  ///< "step0010_layer003_cond_joint b0 h5"
  int64_t step = 0, layer = 0, batch = 0, head = 0;
  std::string branch, kind;
  std::vector<float> video;          ///< [T, H, W] row-major; without a grid in sequence order
  std::vector<float> text;           ///< [text tokens]; may be empty
  std::vector<int64_t> chosen_text;  ///< text tokens that were asked for, counted within the text
  int64_t averaged = 1;              ///< heads that it is the mean of; what they differ in is −1
  size_t tokens = 0;                 ///< which of QueryVolumes::token_lists names its text
  std::optional<std::array<int64_t, 3>> query;  ///< t, y, x outlined in pictures
};

/// What the volumes have in common.
struct QueryVolumes {
  std::array<int64_t, 3> grid{};  ///< T, H, W
  /// Strings of the text part as they were recorded: prompts differ between calls and batch items.
  /// A list may be empty or shorter than the text.
  std::vector<std::vector<std::string>> token_lists{{}};
  std::string model, capture, domain, query_text;
  bool reverse = false;            ///< the values are of queries: who attends to the chosen keys
  std::string weighting = "none";  ///< "value": weights times the norm of the key's value row
  std::string mean = "none";       ///< what volumes were averaged over: "heads, layers"
  std::vector<QueryVolume> volumes;

  const std::vector<std::string>& tokens_of(const QueryVolume& volume) const {
    return token_lists[volume.tokens];
  }
};

/// Each writes a complete file or throws Error(file) and leaves nothing behind under `path`
/// (written as PATH.part, renamed at the end; a file that is there is replaced with `force` only).
/// Memory beyond the volumes stays below 2 MiB.
/// float32 [n, T, H, W], NumPy format 1.0.
void write_volumes_npy(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// One line a value: step,layer,branch,kind,batch,head,segment,index,t,y,x,token,weight. `index`
/// counts within the segment; t, y, x are empty without a grid, which only this format may lack.
void write_volumes_csv(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// Datasets `volume` [n, T, H, W], `text` [n, text tokens] and coordinates, dimension scales.
void write_volumes_hdf5(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// A filmstrip: a row of T frames a volume, log₂ colour scale shared by a volume's frames, the
/// query outlined, frame numbers, a colour bar with ticks, unit and domain, the label.
void write_volumes_png(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);
/// A looping animation through the T frames of at most 16 volumes.
void write_volumes_gif(const QueryVolumes& volumes, const std::filesystem::path& path, bool force);

/// Throws Error(usage) when more heads than a picture can hold are to be drawn, before they exist.
void check_picture_size(const std::filesystem::path& path, std::array<int64_t, 3> grid,
                        int64_t volumes);

}  // namespace attnscope
