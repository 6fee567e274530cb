#include "io/relabel/relabel_journal.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/capture/interrupted_relabel.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/posix_file.h"
#include "io/files/strict_json.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "attnscope-relabel/1";

/// A file that has its name when all of it is on the disk. Throws Error(interrupted) before it has.
void write_durably(const fs::path& path, const std::string& text,
                   const std::stop_token& stop = {}) {
  const fs::path part = relabel_part(path);
  std::error_code ignored;
  fs::remove(part, ignored);
  try {
    PosixFile file(part, PosixFile::Mode::create);
    file.write_at(std::as_bytes(std::span(text)), 0);
    if (fs::exists(path, ignored)) {
      fs::permissions(part, fs::status(path, ignored).permissions(), ignored);
    }
    file.sync();
    file.close();
    if (stop.stop_requested()) {
      throw Error(ErrorCode::interrupted, "interrupted: nothing was changed");
    }
    rename_file(part, path, true);
  } catch (const Error&) {
    fs::remove(part, ignored);
    throw;
  }
  sync_folder_of(path);
}

/// A line that describes a text, then the text: of any length and content, which lines of JSON are
/// not read with.
std::string record_of(OrderedJson about, const std::string& text) {
  about["bytes"] = text.size();
  return about.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n" + text + "\n";
}

/// Reads what record_of() made, one after the other.
class Records {
 public:
  explicit Records(const fs::path& file) : file_(file.string()), text_(read_file_text(file)) {}

  bool at_end() const { return at_ == text_.size(); }
  std::string where() const { return "record " + std::to_string(number_); }
  Error fault(const std::string& what) const { return file_error(file_, where(), what); }

  /// Reads the next record: returns what describes its text, which text() then has.
  Json next() {
    ++number_;
    const size_t end = text_.find('\n', at_);
    if (end == std::string::npos) throw fault("is cut off");
    Json about = parse_strict_json(std::string_view(text_).substr(at_, end - at_), file_, where());
    const bool sized = about.is_object() && about.contains("bytes") &&
                       about["bytes"].is_number_unsigned() &&
                       about["bytes"].get<uint64_t>() < text_.size() - end - 1;
    if (!sized) throw fault("is no record of a journal of attnscope relabel");
    const size_t bytes = about["bytes"].get<size_t>();
    record_ = text_.substr(end + 1, bytes);
    at_ = end + 1 + bytes + 1;
    return about;
  }
  const std::string& text() const { return record_; }

 private:
  std::string file_, text_, record_;
  size_t at_ = 0;
  int64_t number_ = 0;
};

HeaderPatch patch_of(const Json& json, const std::string& header) {
  HeaderPatch patch;
  json.at("file").get_to(patch.file);
  json.at("file_bytes").get_to(patch.file_bytes);
  json.at("header_bytes").get_to(patch.header_bytes);
  json.at("to_bytes").get_to(patch.to_bytes);
  json.at("is_shared").get_to(patch.is_shared);
  patch.header = header;
  return patch;
}

/// A header over the old one, or with one that is longer: nothing that cuts tensors.
bool is_possible(const HeaderPatch& patch) {
  return patch.header_bytes >= 0 && patch.file_bytes >= patch.header_bytes + 8 &&
         patch.to_bytes >= patch.header_bytes && std::ssize(patch.header) <= patch.to_bytes &&
         patch.to_bytes <= 200'000'000;
}

}  // namespace

bool has_relabel_journal(const fs::path& folder) {
  return fs::symlink_status(folder / kRelabelJournal).type() != fs::file_type::not_found;
}

void write_relabel_journal(const fs::path& folder, const RelabelWork& work,
                           const std::stop_token& stop) {
  std::string text = record_of({{"format", kFormat},
                                {"files", work.files.size()},
                                {"catalogue", work.catalogue.has_value()}},
                               work.catalogue.value_or(""));
  for (const HeaderPatch& patch : work.files) {
    text += record_of({{"file", patch.file},
                       {"file_bytes", patch.file_bytes},
                       {"header_bytes", patch.header_bytes},
                       {"to_bytes", patch.to_bytes},
                       {"is_shared", patch.is_shared}},
                      patch.header);
  }
  write_durably(folder / kRelabelJournal, text, stop);
}

RelabelWork read_relabel_journal(const fs::path& folder) {
  const fs::path path = folder / kRelabelJournal;
  if (fs::is_symlink(fs::symlink_status(path))) {
    throw file_error(path.string(), "", "is a symbolic link, which no journal is");
  }
  Records records(path);
  RelabelWork work;
  int64_t files = -1;
  while (!records.at_end()) {
    const Json about = records.next();
    try {
      if (files >= 0) {
        work.files.push_back(patch_of(about, records.text()));
        if (!is_possible(work.files.back()))
          throw records.fault("tells of a header that cannot be");
        continue;
      }
      if (about.at("format") != kFormat) throw records.fault("is of no journal that is known");
      about.at("files").get_to(files);
      if (about.at("catalogue").get<bool>()) work.catalogue = records.text();
    } catch (const Json::exception&) {
      throw records.fault("is no record of a journal of attnscope relabel");
    }
  }
  if (files == std::ssize(work.files)) return work;
  throw file_error(path.string(), "", "is no complete journal of attnscope relabel");
}

void finish_relabel(const fs::path& folder, const RelabelWork& work, const std::stop_token& stop) {
  for (const HeaderPatch& patch : work.files) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    apply_header_patch(folder, patch);
  }
  if (work.catalogue) write_durably(folder / kCatalogueName, *work.catalogue);
  std::error_code error;
  fs::remove(folder / kRelabelJournal, error);
  if (error) throw errno_error(folder / kRelabelJournal, "cannot be removed", error.value());
  sync_folder_of(folder / kRelabelJournal);
}

}  // namespace attnscope
