#include "io/files/file_ending.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/choice_list.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Endings that say what is in a file, in small letters.
constexpr std::array<std::string_view, 36> kKnownEndings{
    ".h5",  ".hdf5", ".he5",  ".nc",   ".npy", ".npz", ".pt",      ".pth", ".safetensors",
    ".bin", ".ckpt", ".onnx", ".mat",  ".pkl", ".csv", ".tsv",     ".txt", ".md",
    ".log", ".json", ".html", ".svg",  ".pdf", ".png", ".jpg",     ".gif", ".jpeg",
    ".bmp", ".webp", ".tif",  ".tiff", ".mp4", ".zip", ".parquet", ".tar", ".gz"};

std::string small_letters(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

template <typename List>
bool has(const List& list, std::string_view ending) {
  return std::find(std::begin(list), std::end(list), ending) != std::end(list);
}

/// A command that has something for standard output takes `-` before it comes to names.
void refuse_standard_output(const std::filesystem::path& file, std::string_view option,
                            std::string_view what) {
  if (file != "-") return;
  throw usage_error(fmt::format("{} -: {} is not for standard output: name a file", option, what));
}

/// `what` says what is written, and how its name ends.
void refuse_other_ending(const std::filesystem::path& file,
                         std::initializer_list<std::string_view> own, std::string_view what) {
  const std::string ending = small_letters(file.extension().string());
  if (!has(kKnownEndings, ending) || has(own, ending)) return;
  throw usage_error(fmt::format("-o {}: {}", one_line(file.string()), what));
}

}  // namespace

void require_ending(const std::filesystem::path& file, std::span<const std::string_view> endings,
                    std::string_view option) {
  const std::string ending = file.extension().string();
  if (has(endings, ending)) return;
  const std::string list = choice_list(std::vector(endings.begin(), endings.end()));
  refuse_standard_output(file, option, "a " + list);
  throw usage_error(fmt::format("{} {}: the name must end in {} (got \"{}\")", option,
                                one_line(file.string()), list, one_line(ending)));
}

void require_ending(const std::filesystem::path& file,
                    std::initializer_list<std::string_view> endings, std::string_view option) {
  require_ending(file, std::span(endings.begin(), endings.size()), option);
}

void check_export_name(const std::filesystem::path& file) {
  refuse_standard_output(file, "-o", "an export");
  refuse_other_ending(file, {".h5", ".hdf5", ".he5", ".nc"}, "an export is HDF5: end it in .h5");
}

void check_capture_name(const std::filesystem::path& file) {
  refuse_standard_output(file, "-o", "a capture");
  refuse_other_ending(file, {".safetensors"},
                      "a capture is a folder, or one call's file, which ends in .safetensors");
}

}  // namespace attnscope
