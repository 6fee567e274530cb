#include "io/tensors/hdf5_tensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/hdf5_chunks.h"
#include "io/tensors/hdf5_structure.h"
#include "io/tensors/recorded_values.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

/// A number that the helper told; it may be anything.
int64_t size_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{1} << 62) {
    return static_cast<int64_t>(value.get<uint64_t>());
  }
  return value.is_number_integer() && value.get<int64_t>() >= 0 ? value.get<int64_t>() : -1;
}

std::vector<int64_t> sizes_of(const Json& list) {
  std::vector<int64_t> sizes;
  for (const Json& value : list) sizes.push_back(size_of(value));
  return sizes;
}

class Hdf5TensorFile : public TensorFile {
 public:
  Hdf5TensorFile(std::shared_ptr<const InputFile> file, const ReadControl& control)
      : TensorFile(file->path()),
        stop_(control.stop),
        file_(std::move(file)),
        cache_(std::make_shared<ChunkCache>()) {
    const Json structure = read_hdf5_structure(path().string(), stop_);
    // The helper opens the file by its name.
    file_->require_unchanged();
    const Json& attributes = structure["attributes"];
    if (attributes.contains("format") && attributes["format"] == "attnscope-export/1") {
      throw file_error(path().string(), "", "is an export, no capture: it holds no q and k");
    }
    for (const Json& dataset : structure["datasets"]) {
      const std::string key = dataset["path"].get<std::string>();
      datasets_[key] = dataset;
      if (!take_value(key, dataset)) keys_.push_back(key);
    }
    // A dataset goes before an attribute of its name.
    for (const auto& [name, value] : attributes.items()) {
      metadata_.emplace(name, text_of_value(value));
    }
  }

  std::vector<std::string> keys() const override { return keys_; }
  std::shared_ptr<const TensorSource> tensor(const std::string& key) const override {
    const std::string plain = key.starts_with('/') ? key.substr(1) : key;
    const auto found = datasets_.find(plain);
    if (found == datasets_.end()) throw missing_tensor(*this, key);
    const Json& dataset = found->second;
    if (dataset.contains("error")) fail(plain, dataset["error"].get<std::string>());
    return dataset["layout"] == "chunked" ? open_chunked(plain, dataset)
                                          : open_contiguous(plain, dataset);
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw file_error(path().string(), "dataset " + key, what);
  }

  /// Datasets of a few numbers that are values by their names, and texts.
  bool take_value(const std::string& key, const Json& dataset) {
    if (dataset.contains("text")) {
      return metadata_.emplace(key, dataset["text"].get<std::string>()).second;
    }
    if (!names_value(key) || dataset.contains("error")) return false;
    if (dataset["layout"] != "contiguous") return false;
    const auto text = text_of_tensor(*open_contiguous(key, dataset));
    return text && metadata_.emplace(key, *text).second;
  }

  FileTensorLayout base_layout(const std::string& key, const Json& dataset) const {
    FileTensorLayout layout;
    layout.dtype = *parse_dtype(dataset["dtype"].get<std::string>());
    layout.shape = sizes_of(dataset["shape"]);
    layout.big_endian = dataset["big_endian"].get<bool>();
    const auto count = checked_count(layout.shape);
    if (!count || !checked_mul(*count, dtype_bytes(layout.dtype))) {
      fail(key, "the shape " + dataset["shape"].dump() + " overflows");
    }
    return layout;
  }
  static int64_t bytes_of(const FileTensorLayout& layout) {
    return *checked_count(layout.shape) * dtype_bytes(layout.dtype);
  }
  std::string tensor_name(const std::string& key) const {
    return path().string() + ": tensor " + key;
  }

  std::shared_ptr<const TensorSource> open_contiguous(const std::string& key,
                                                      const Json& dataset) const {
    FileTensorLayout layout = base_layout(key, dataset);
    const int64_t bytes = bytes_of(layout);
    if (bytes == 0) return std::make_shared<FileTensor>(file_, tensor_name(key), layout);
    if (dataset["address"].is_null()) fail(key, "was never written");
    layout.offset = size_of(dataset["address"]);
    if (layout.offset < 0 || layout.offset > file_->size() ||
        bytes > file_->size() - layout.offset) {
      fail(key, "its data lie beyond the end of the file (" + std::to_string(bytes) +
                    " bytes from byte " + dataset["address"].dump() + ", limit " +
                    std::to_string(file_->size()) + ")");
    }
    return std::make_shared<FileTensor>(file_, tensor_name(key), layout);
  }

  std::shared_ptr<const TensorSource> open_chunked(const std::string& key,
                                                   const Json& dataset) const {
    ChunkedLayout layout;
    const FileTensorLayout base = base_layout(key, dataset);
    layout.dtype = base.dtype;
    layout.shape = base.shape;
    layout.big_endian = base.big_endian;
    layout.chunk = sizes_of(dataset["chunk"]);
    const bool sane = layout.chunk.size() == layout.shape.size() &&
                      std::all_of(layout.chunk.begin(), layout.chunk.end(),
                                  [](int64_t extent) { return extent > 0; });
    const auto count = sane ? checked_count(layout.chunk) : std::nullopt;
    const auto bytes = count ? checked_mul(*count, dtype_bytes(layout.dtype)) : std::nullopt;
    if (!bytes) fail(key, "its chunks have no sensible shape");
    layout.packing.chunk_bytes = *bytes;
    for (const Json& filter : dataset["filters"])
      layout.packing.filters.push_back(filter_of(key, filter));
    if (!layout.packing.filters.empty() && *bytes > kMaxPackedChunkBytes) {
      fail(key, "its packed chunks are too large (got " + std::to_string(*bytes) +
                    " bytes each, limit " + std::to_string(kMaxPackedChunkBytes) +
                    "): save it in smaller chunks or without compression");
    }
    if (bytes_of(base) > 0) read_places(key, layout);
    return std::make_shared<ChunkedTensor>(file_, cache_, tensor_name(key), std::move(layout));
  }

  ChunkFilter filter_of(const std::string& key, const Json& filter) const {
    const int id = filter["id"].get<int>();
    const auto known = chunk_filter(id, filter["values"].get<std::vector<unsigned>>());
    if (known) return *known;
    fail(key, "is packed by the filter " + filter["name"].dump() + " (number " +
                  std::to_string(id) + "): only gzip, shuffle and fletcher32 can be read");
  }

  /// Asks where the chunks stand and checks every one.
  void read_places(const std::string& key, ChunkedLayout& layout) const {
    const size_t rank = layout.chunk.size();
    std::vector<int64_t> grid;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t extent = layout.shape[axis];
      grid.push_back(extent / layout.chunk[axis] + (extent % layout.chunk[axis] != 0 ? 1 : 0));
    }
    const auto total = checked_count(grid);
    const Json chunks = read_hdf5_chunks(path().string(), key, stop_);
    file_->require_unchanged();
    if (!total || static_cast<uint64_t>(*total) != chunks.size()) {
      fail(key, "not every chunk was written (got " + std::to_string(chunks.size()) +
                    (total ? " of " + std::to_string(*total) : "") + ")");
    }
    layout.places.assign(chunks.size(), {-1, 0, 0});
    for (const Json& chunk : chunks) {
      const auto numbers = sizes_of(chunk);
      int64_t index = numbers.size() == rank + 3 ? 0 : -1;
      for (size_t axis = 0; axis < rank && index >= 0; ++axis) {
        const int64_t at = numbers[axis] / layout.chunk[axis];
        const bool inside =
            numbers[axis] >= 0 && numbers[axis] % layout.chunk[axis] == 0 && at < grid[axis];
        index = inside ? index * grid[axis] + at : -1;
      }
      if (index < 0 || layout.places[static_cast<size_t>(index)].offset >= 0) {
        fail(key, "has a chunk where none belongs");
      }
      layout.places[static_cast<size_t>(index)] =
          checked_place(key, layout, numbers[rank], numbers[rank + 1], numbers[rank + 2]);
    }
  }

  ChunkPlace checked_place(const std::string& key, const ChunkedLayout& layout, int64_t offset,
                           int64_t bytes, int64_t mask) const {
    const ChunkPlace place{offset, bytes, static_cast<uint32_t>(mask)};
    const std::string fault = place_fault(place, layout.packing, file_->size());
    if (!fault.empty()) fail(key, fault);
    if (mask < 0 || mask > std::numeric_limits<uint32_t>::max()) fail(key, "a chunk is damaged");
    return place;
  }

  std::stop_token stop_;
  std::shared_ptr<const InputFile> file_;
  std::shared_ptr<ChunkCache> cache_;
  std::map<std::string, Json> datasets_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

std::shared_ptr<const TensorFile> open_hdf5_tensors(std::shared_ptr<const InputFile> file,
                                                    const ReadControl& control) {
  return std::make_shared<Hdf5TensorFile>(std::move(file), control);
}

bool says_export(const std::filesystem::path& path) {
  const Json attributes = read_hdf5_attributes(path.string());
  return attributes.contains("format") && attributes["format"] == "attnscope-export/1";
}

}  // namespace attnscope
