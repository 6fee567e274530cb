#include "io/capture/capture_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <system_error>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/files/input_set.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

/// Names of blocks and slots as parts of file names.
std::string file_part(const std::string& name) {
  std::string part = name;
  for (char& c : part) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  return "_" + part;
}

/// Facts as a safetensors file holds them: texts as they are, all else as JSON.
std::map<std::string, std::string> metadata_of(const OrderedJson& facts) {
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : facts.items()) {
    metadata[name] = value.is_string()
                         ? value.get<std::string>()
                         : value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
  return metadata;
}

void write_text(const fs::path& path, const std::string& text) {
  StagedFile file(path, false);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

constexpr int64_t kPieceBytes = 1 << 18;

/// By the formats' own marks; a PNG's first chunk has to be its header, of 13 bytes.
bool begins_as_picture(std::string_view start) {
  constexpr std::string_view kPng("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  return start.starts_with(kPng) || start.starts_with("\xff\xd8\xff") ||
         start.starts_with("GIF87a") || start.starts_with("GIF89a") ||
         (start.starts_with("RIFF") &&
          start.substr(std::min<size_t>(start.size(), 8), 4) == "WEBP");
}

/// Reads a picture from beginning to end and hands it on in pieces. Throws Error(file) where it
/// does not begin as a PNG, JPEG, GIF or WebP file does, before anything is handed on, and where
/// it was changed meanwhile.
void read_picture(const InputFile& file,
                  const std::function<void(std::span<const std::byte>)>& on) {
  std::vector<std::byte> piece;
  for (int64_t at = 0; at == 0 || at < file.size(); at += kPieceBytes) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, file.size() - at)));
    file.read_at(at, piece);
    const std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (at == 0 && !begins_as_picture(text)) {
      throw file_error(file.path().string(), "",
                       "is no picture: expected a PNG, JPEG, GIF or WebP file");
    }
    on(piece);
  }
  file.require_unchanged();
}

OrderedJson write_pictures(const std::vector<PictureToWrite>& pictures, const fs::path& folder) {
  OrderedJson list = OrderedJson::array();
  for (const PictureToWrite& picture : pictures) {
    const std::string name =
        fmt::format("frame{:04}{}", list.size(), picture.file->path().extension().string());
    StagedFile file(folder / name, false);
    read_picture(*picture.file, [&](std::span<const std::byte> bytes) { file.append(bytes); });
    file.commit();
    list.push_back({{"file", name}, {"t", picture.t}});
  }
  return list;
}

}  // namespace

std::string CallToWrite::file_name() const {
  const ModelPlace& place = id.place;
  std::string where = place.block.empty() ? "" : file_part(place.block);
  if (!place.slot.empty()) where += file_part(place.slot);
  if (id.layer != kNoLayer) where = fmt::format("_layer{:03}", id.layer) + where;
  if (place.has_chunk()) where = fmt::format("_chunk{:03}", place.chunk) + where;
  if (place.forward.is_stated()) where += fmt::format("_forward{:04}", place.forward.forward);
  if (place.forward.call > 0) where += fmt::format("_call{:03}", place.forward.call);
  return fmt::format("step{:04}{}_{}_{}.safetensors", id.step, where, kind_name(id.kind), branch);
}

int64_t CallToWrite::bytes() const {
  int64_t bytes = 0;
  for (const TensorToWrite& tensor : tensors) {
    const auto sum = checked_add(bytes, tensor.bytes());
    if (!sum) throw usage_error("the copy would take more than 2^63 bytes");
    bytes = *sum;
  }
  return bytes;
}

std::vector<PictureToWrite> recorded_pictures(const Capture& capture) {
  std::vector<PictureToWrite> pictures;
  std::error_code missing;
  for (const FrameFile& frame : capture.frames()) {
    if (!fs::is_regular_file(frame.file, missing)) continue;
    pictures.push_back({capture.open_frame(frame), frame.t});
  }
  return pictures;
}

void CaptureWriter::write_call(const CallToWrite& call, StagedFile& file) {
  write_safetensors(file, metadata_of(call.facts), call.tensors, [&](int64_t bytes) {
    if (control_.stop.stop_requested()) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was written");
    }
    written_ += bytes;
    if (control_.progress) control_.progress(written_);
  });
  for (const auto& input : inputs_) input->require_reads_unchanged();
}

void CaptureWriter::write_file(const CallToWrite& call, const fs::path& out) {
  StagedFile file(out, control_.force);
  write_call(call, file);
  if (check_) check_(file.part_path());
  file.commit();
}

void CaptureWriter::write_folder(const FolderToWrite& content, const fs::path& out) {
  CaptureFolder folder(out, control_.force);
  OrderedJson list = content.root;
  list["frames"] = write_pictures(content.pictures, folder.part_path());
  list["calls"] = OrderedJson::array();
  for (size_t i = 0; i < content.count; ++i) {
    const CallToWrite call = content.call(i);
    StagedFile file(folder.part_path() / call.file_name(), false);
    write_call(call, file);
    file.commit();
    const Unrecorded& unrecorded = call.id.place.unrecorded;
    OrderedJson entry{{"file", call.file_name()}};
    if (!unrecorded.step) entry["step"] = call.id.step;
    if (call.id.layer != kNoLayer && !unrecorded.layer) entry["layer"] = call.id.layer;
    if (call.id.place.has_chunk()) entry["chunk"] = call.id.place.chunk;
    list["calls"].push_back(std::move(entry));
  }
  write_text(folder.part_path() / kCatalogueName, json_text(list, 2) + "\n");
  if (check_) check_(folder.part_path());
  for (const auto& input : inputs_) input->require_unchanged();
  folder.commit();
}

}  // namespace attnscope
