#include "io/tensors/open_tensor_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "io/files/input_set.h"
#include "io/hdf5/hdf5_signature.h"
#include "io/tensors/hdf5_tensors.h"
#include "io/tensors/npy.h"
#include "io/tensors/npz.h"
#include "io/tensors/safetensors.h"
#include "io/tensors/tensor_index.h"
#include "io/tensors/torch_file.h"

namespace attnscope {
namespace {

/// Files of torch.save before version 1.6 are not read: a tar archive, or pickles in a row.
constexpr std::string_view kOldTorch =
    "is an old torch.save file: load it with torch and save the tensors as safetensors, or with "
    "today's torch.save";
constexpr std::string_view kOldTorchMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9", 9);
constexpr size_t kTarMagicAt = 257;

}  // namespace

std::shared_ptr<const TensorFile> open_tensor_file(const std::filesystem::path& path,
                                                   const ReadControl& control) {
  std::array<char, kTarMagicAt + 5> bytes{};
  const std::shared_ptr<const InputFile> file =
      control.files ? control.files->open(path) : std::make_shared<const InputFile>(path);
  const auto size = static_cast<size_t>(std::min<int64_t>(file->size(), bytes.size()));
  file->read_at(0, std::as_writable_bytes(std::span(bytes)).first(size));
  const std::string_view start(bytes.data(), size);
  const std::string extension = path.extension().string();
  const JsonLimits limits{.memory = control.memory};
  if (start.starts_with("\x93NUMPY") || extension == ".npy") return open_npy(file, path);
  if (looks_like_zip(start) || extension == ".npz") {
    ZipFile zip(file, path, control);
    return is_torch_zip(zip) ? open_torch(std::move(zip)) : open_npz(std::move(zip));
  }
  // A safetensors header is a JSON object: '{' (or white space before it) follows its length, which
  // fits 32 bits. This comes before pickles: a length of 640 bytes begins like one.
  const bool json = size > 8 && std::string_view("{ \t\n\r").find(start[8]) != std::string::npos;
  const bool short_length = size > 8 && start.substr(4, 4) == std::string_view("\0\0\0\0", 4);
  if (json && short_length) return read_safetensors(file, path, limits);
  if (begins_as_hdf5(start)) return open_hdf5_tensors(file, control);
  if (has_hdf5_userblock(*file)) return open_hdf5_tensors(file, control);
  if (start.starts_with(kOldTorchMagic) || start.substr(std::min(size, kTarMagicAt)) == "ustar") {
    throw file_error(path.string(), "", kOldTorch);
  }
  if (start.starts_with("\x80") && start.size() > 1 && start[1] >= 2 && start[1] <= 5) {
    throw file_error(path.string(), "",
                     "is a pickle, which is never executed: save the tensors as safetensors");
  }
  if (start.starts_with("{")) return open_tensor_index(*file, control);
  if (json || extension == ".safetensors") return read_safetensors(file, path, limits);
  throw file_error(path.string(), "", "is no safetensors, .npy, .npz, .pt or HDF5 file");
}

}  // namespace attnscope
