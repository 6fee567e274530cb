#include "io/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "core/selection.h"
#include "io/input_file.h"

namespace attnscope {

Error missing_tensor(const TensorFile& file, const std::string& key) {
  constexpr size_t kMostNamed = 20;
  const std::vector<std::string> keys = file.keys();
  std::string text = "there is no such tensor";
  const std::string nearest = nearest_word(key, keys);
  if (!nearest.empty()) text += ", did you mean " + nearest + "?";
  text += keys.empty() ? " (the file has none)" : " (it has ";
  for (size_t i = 0; i < keys.size() && i < kMostNamed; ++i) text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMostNamed)
    text += " and " + std::to_string(keys.size() - kMostNamed) + " more";
  if (!keys.empty()) text += ")";
  return file_error(file.path().string(), "tensor " + key, text);
}

std::shared_ptr<const TensorFile> open_tensor_file(const std::filesystem::path& path) {
  std::array<char, 9> start{};
  const InputFile file(path);
  const auto size = static_cast<size_t>(std::min<int64_t>(file.size(), start.size()));
  file.read_at(0, std::as_writable_bytes(std::span(start)).first(size));
  constexpr std::array<char, 6> kNpyMagic{'\x93', 'N', 'U', 'M', 'P', 'Y'};
  const std::string extension = path.extension().string();
  if (std::equal(kNpyMagic.begin(), kNpyMagic.end(), start.begin()) || extension == ".npy") {
    return open_npy(path);
  }
  // A safetensors header is a JSON object: '{' (or white space before it) follows its length, which
  // fits 32 bits. This comes first: a length of 640 bytes begins like a pickle.
  const bool json = size == start.size() &&
                    std::all_of(&start[4], &start[8], [](char c) { return c == 0; }) &&
                    (start[8] == '{' || start[8] == ' ' || start[8] == '\t' || start[8] == '\n' ||
                     start[8] == '\r');
  if (json) return open_safetensors(path);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOthers{
      {{"PK\x03\x04", "a zip file (.npz, .pt): save the tensors as safetensors or .npy"},
       {"\x89HDF", "an HDF5 file: save the tensors as safetensors or .npy"},
       {"\x80\x02", "a pickle: save the tensors as safetensors or .npy"}}};
  for (const auto& [magic, text] : kOthers) {
    if (std::string_view(start.data(), size).substr(0, magic.size()) == magic) {
      throw file_error(path.string(), "", "is " + std::string(text));
    }
  }
  if (extension == ".safetensors") return open_safetensors(path);
  throw file_error(path.string(), "", "is neither a safetensors nor a .npy file");
}

}  // namespace attnscope
