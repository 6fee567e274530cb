#include "io/relabel/header_patch.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/files/inner_path.h"
#include "io/files/input_set.h"
#include "io/files/posix_file.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLengthBytes = 8;
/// As readers of safetensors allow.
constexpr int64_t kMostHeaderBytes = 100'000'000;
constexpr int64_t kPatchBytes = 1 << 20;

std::array<std::byte, kLengthBytes> length_bytes(int64_t length) {
  std::array<std::byte, kLengthBytes> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<uint64_t>(length) >> (8 * i) & 0xff);
  }
  return bytes;
}

int64_t header_length(const PosixFile& file) {
  std::array<std::byte, kLengthBytes> bytes{};
  file.read_at(bytes, 0);
  uint64_t length = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    length |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  if (length <= static_cast<uint64_t>(std::min(kMostHeaderBytes, file.size() - kLengthBytes))) {
    return static_cast<int64_t>(length);
  }
  throw file_error(file.path().string(), "header", "has an impossible length");
}

std::string header_text(const PosixFile& file, int64_t length) {
  std::string text(static_cast<size_t>(length), '\0');
  file.read_at(std::as_writable_bytes(std::span(text)), kLengthBytes);
  return text;
}

std::string padded(const HeaderPatch& patch) {
  std::string text = patch.header;
  text.resize(static_cast<size_t>(patch.to_bytes), ' ');
  return text;
}

bool has_other_names(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && info.st_nlink > 1;
}

/// The labels in a file's metadata become others; false where it states none and is no call.
bool write_metadata(const RelabelledCall& call, OrderedJson& header) {
  if (!header.contains("__metadata__")) return false;
  OrderedJson& metadata = header["__metadata__"];
  const OrderedJson before = labels_json(call.before), after = labels_json(call.after);
  std::map<std::string, std::string> stated;
  for (const auto& [name, value] : metadata.items()) {
    stated[name] = value.is_string() ? value.get<std::string>() : "";
  }
  const bool is_call = !capture_format(stated).empty();
  bool changes = false;
  for (const char* name : {"step", "layer", "branches", "forward", "of_step", "call"}) {
    const bool same = before.contains(name) == after.contains(name) &&
                      (!after.contains(name) || before[name] == after[name]);
    if (same || (!is_call && !stated.contains(name))) continue;
    changes = true;
    if (after.contains(name)) {
      metadata[name] = after[name].dump();
    } else {
      metadata.erase(name);
    }
  }
  return changes;
}

/// Writes the file anew, with a header of another length.
void rewrite(const PosixFile& old, const HeaderPatch& patch) {
  const fs::path& path = old.path();
  const fs::path part = relabel_part(path);
  std::error_code ignored;
  fs::remove(part, ignored);
  PosixFile file(part, PosixFile::Mode::create);
  file.write_at(length_bytes(patch.to_bytes), 0);
  const std::string text = padded(patch);
  file.write_at(std::as_bytes(std::span(text)), kLengthBytes);
  const int64_t from = kLengthBytes + patch.header_bytes, to = kLengthBytes + patch.to_bytes;
  std::vector<std::byte> piece;
  for (int64_t at = 0; at < patch.file_bytes - from; at += kPatchBytes) {
    piece.resize(static_cast<size_t>(std::min(kPatchBytes, patch.file_bytes - from - at)));
    old.read_at(piece, from + at);
    file.write_at(piece, to + at);
  }
  fs::permissions(part, fs::status(path, ignored).permissions(), ignored);
  file.sync();
  file.close();
  rename_file(part, path, true);
  sync_folder_of(path);
}

}  // namespace

fs::path relabel_part(const fs::path& path) {
  return path.parent_path() / (".relabel-" + path.filename().string());
}

std::optional<HeaderPatch> header_patch(const fs::path& folder, const RelabelledCall& call) {
  const PosixFile file(call.file, PosixFile::Mode::read_only);
  HeaderPatch patch;
  patch.file = call.file.lexically_relative(folder).string();
  patch.file_bytes = file.size();
  patch.header_bytes = header_length(file);
  OrderedJson header = OrderedJson::parse(header_text(file, patch.header_bytes), nullptr, false);
  if (!header.is_object()) throw file_error(call.file.string(), "header", "is no JSON object");
  if (!write_metadata(call, header)) return std::nullopt;
  patch.header = header.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  patch.to_bytes = patch.header_bytes;
  patch.is_shared = has_other_names(call.file);
  const auto needed = static_cast<int64_t>(patch.header.size());
  if (needed > patch.header_bytes) patch.to_bytes = (needed + 7) / 8 * 8 + kHeaderRoom;
  return patch;
}

void apply_header_patch(const fs::path& folder, const HeaderPatch& patch) {
  const auto path = inner_path(folder, patch.file);
  if (!path) throw file_error(folder.string(), patch.file, "is no file of this folder");
  // Through no link, on the way to it either.
  InputSet(folder).open_unlinked(*path);
  PosixFile file(*path, PosixFile::Mode::existing);
  const int64_t length = header_length(file);
  const std::string text = padded(patch);
  if (length == patch.to_bytes && header_text(file, length) == text) return;
  if (length != patch.header_bytes || file.size() != patch.file_bytes) {
    throw file_error(path->string(), "", "was changed since attnscope relabel began");
  }
  if (!patch.in_place()) return rewrite(file, patch);
  file.write_at(std::as_bytes(std::span(text)), kLengthBytes);
  file.sync_data();
}

}  // namespace attnscope
