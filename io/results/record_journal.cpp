#include "io/results/record_journal.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/version.h"
#include "io/export/format/export_header.h"
#include "io/export/format/interrupted_run.h"
#include "io/files/built_output.h"
#include "io/files/checksum.h"
#include "io/files/file_text.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "io/files/leftovers.h"
#include "io/files/rank_files.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

using std::filesystem::path;

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// "attnscope-stats-part/" of "attnscope-stats-part/2".
std::string without_number(const std::string& format) {
  return format.substr(0, format.rfind('/') + 1);
}

/// "stats" of it.
std::string command_of(const std::string& format) {
  const size_t begin = format.find('-') + 1;
  return format.substr(begin, format.find('-', begin) - begin);
}

constexpr std::string_view kAdvice = "--force alone gives it up";

/// The list of a run with this header, behind its first line; nothing where it was cut off in that.
std::optional<SummedLineReader> open_list(const path& file, const OrderedJson& header) {
  const auto format = header["format"].get<std::string>();
  const auto refuse = [&](const std::string& what) {
    throw file_error(file.string(), "", fmt::format("{} ({})", what, kAdvice));
  };
  const std::string other = "is no interrupted run of " + command_of(format);
  // Before it is read as lines: a file of another kind may be large.
  if (record_list_at(file) == RecordList::none) refuse(other);
  std::string text = read_file_text(file);
  if (text.find('\n') == std::string::npos) return std::nullopt;
  const std::string begin = R"({"format":")";
  if (!text.starts_with(begin + format + '"')) {
    const bool other_version = text.starts_with(begin + without_number(format));
    refuse(other_version ? "was left by another version of attnscope, whose records are not as "
                           "this one writes them"
                         : other);
  }
  SummedLineReader lines(file, std::move(text));
  const OrderedJson found = OrderedJson::parse(lines.next(kAdvice).value_or(""), nullptr, false);
  if (!found.is_object()) refuse(other);
  expect_same_run(found, header, file);
  return lines;
}

/// The lists of the run beside `out`.
std::vector<path> lists_beside(const path& out) {
  std::vector<path> files{out};
  files.front() += ".part";
  for (const int rank : ranks_beside(out)) files.push_back(rank_journal_path(out, rank));
  std::error_code none;
  std::erase_if(files, [&](const path& file) { return !std::filesystem::exists(file, none); });
  return files;
}

/// In what an interrupted export, by its journal's header, differs from the run with `header`.
std::string difference_of_export(const std::string& there, const OrderedJson& header,
                                 const std::string& capture, const path& out) {
  ExportManifest wanted;
  wanted.capture = capture;
  wanted.capture_hash = header["capture_hash"].get<std::string>();
  wanted.options = text_of(header["options"]);
  wanted.version = version();
  return header_difference(there, wanted, with_suffix(out, ".journal").string());
}

/// True of a list that is of the run with this header, as its first line says.
bool is_list_of(const path& file, const OrderedJson& header) {
  try {
    return open_list(file, header).has_value();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

OrderedJson record_list_header(std::string_view command, const OrderedJson& identity) {
  OrderedJson header{{"format", fmt::format("attnscope-{}-part/2", command)}};
  header.update(identity);
  return header;
}

int64_t records_left(const path& out, const OrderedJson& header) {
  // One that was joined to OUT.part is in its own list as well until that goes.
  std::set<std::string> known;
  for (const path& file : lists_beside(out)) {
    if (!is_list_of(file, header)) continue;
    auto lines = open_list(file, header);
    while (auto text = lines->next(kAdvice)) known.insert(std::move(*text));
  }
  return std::ssize(known);
}

void remove_records_left(const path& out, const OrderedJson& header) {
  const std::vector<path> lists = lists_beside(out);
  const auto is_ours = [&](const path& file) { return is_list_of(file, header); };
  if (lists.empty() || !std::all_of(lists.begin(), lists.end(), is_ours)) return;
  OutputFile(out, {.resumable = true, .resume = true}).remove_partial();
}

void check_records_left(const path& out, const OrderedJson& header, const std::string& capture) {
  find_interrupted(out, RunForm::records, [&](const std::string& there) {
    return difference_of_export(there, header, capture, out);
  });
  for (const path& file : lists_beside(out)) {
    auto lines = open_list(file, header);
    while (lines && lines->next(kAdvice)) continue;
  }
}

RecordJournal::RecordJournal(path out, OrderedJson header, const std::string& capture,
                             const OutputFileOptions& options, const Take& take)
    : header_(std::move(header)), sources_(options.sources), replaces_(options.force) {
  file_.emplace(std::move(out), options);
  take_up_interrupted(*file_, RunForm::records, [&](const std::string& there) {
    return difference_of_export(there, header_, capture, file_->out());
  });
  if (options.resume) load(take);
  if (kept_ == 0) {
    file_->remove_partial();
    file_->create_part();
    size_ = 0;
    sums_ = {};
    write_line(text_of(header_));
  }
  begin_syncs(options.sync);
}

RecordJournal::RecordJournal(const path& out, const OrderedJson& header,
                             const OutputFileOptions& options, const std::string& invitation,
                             int rank)
    : header_(header), sources_(options.sources) {
  await_folder(out, invitation);
  own_ = PosixFile(rank_journal_path(out, rank), PosixFile::Mode::create);
  write_line(text_of(header_));
  begin_syncs(options.sync);
}

void RecordJournal::begin_syncs(bool sync) {
  sync_.emplace(
      [this, sync] {
        if (sync) list().sync_data();
      },
      kDurableWithin);
}

void RecordJournal::load(const Take& take) {
  std::error_code none;
  if (!std::filesystem::exists(file_->part_path(), none)) return;
  // A record that was joined to OUT.part is in its own list as well until that goes.
  std::set<std::string> known;
  const auto take_new = [&](std::string text, const path& file, int64_t line) {
    if (!take(OrderedJson::parse(text, nullptr, false))) {
      throw file_error(file.string(), fmt::format("line {}", line),
                       fmt::format("is no record of this run ({})", kAdvice));
    }
    known.insert(std::move(text));
    ++kept_;
  };
  auto first = open_list(file_->part_path(), header_);
  if (!first) return;
  while (auto text = first->next(kAdvice)) {
    take_new(std::move(*text), file_->part_path(), first->sums().lines());
  }
  size_ = first->bytes();
  sums_ = first->sums();
  file_->reopen_part();
  file_->data().truncate(size_);
  for (const int rank : ranks_beside(file_->out())) {
    const path list = rank_journal_path(file_->out(), rank);
    if (!std::filesystem::exists(list, none)) continue;
    auto lines = open_list(list, header_);
    while (auto text = lines ? lines->next(kAdvice) : std::nullopt) {
      if (known.count(*text) != 0) continue;
      write_line(*text);
      take_new(std::move(*text), list, lines->sums().lines());
    }
  }
  file_->sync_data();
  file_->remove_rank_files();
}

void RecordJournal::write_line(std::string_view text) {
  const std::string line = sums_.add(text);
  list().write_at(std::as_bytes(std::span(line)), size_);
  size_ += std::ssize(line);
}

std::string RecordJournal::invite() {
  file_->keep_partial();
  // OUT.part, which says what the others' lists are of, is on the disk before them.
  file_->sync_data();
  return show_folder(file_->out());
}

void RecordJournal::append(const OrderedJson& record) {
  if (sources_) sources_->require_reads_unchanged();
  write_line(text_of(record));
  if (file_) file_->keep_partial();
  sync_->wrote();
}

void RecordJournal::flush() { sync_->flush(); }

bool RecordJournal::finish(const std::function<void(const path&)>& write) {
  flush();
  // The list is not written any more.
  sync_.reset();
  std::error_code none;
  if (!replaces_ && std::filesystem::exists(file_->out(), none)) {
    expect_same_bytes(write);
    file_->remove_partial();
    return false;
  }
  commit_built(*file_, write);
  return true;
}

/// Of a run that was killed when OUT had just got its name, and whose OUT does not say what it was
/// made of.
void RecordJournal::expect_same_bytes(const std::function<void(const path&)>& write) const {
  const path &made = file_->new_part_path(), &out = file_->out();
  std::error_code none;
  std::filesystem::remove(made, none);
  bool same = false;
  try {
    write(made);
    same = file_checksum(made, {}) == file_checksum(out, {});
  } catch (...) {
    std::filesystem::remove(made, none);
    throw;
  }
  std::filesystem::remove(made, none);
  if (same) return;
  throw file_error(out.string(), "",
                   fmt::format("exists, and is not what the records in {} make (--resume --force "
                               "replaces it)",
                               one_line(file_->part_path().filename().string())));
}

}  // namespace attnscope
