#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/problem/head_choice.h"
#include "io/capture/call/call_entry.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/capture/facts/fact_overrides.h"
#include "io/capture/named_folder.h"
#include "io/files/read_progress.h"

namespace attnscope {

class InputFile;
struct CaptureLocation;

/// The chosen calls of a capture with the batch items and heads chosen in each.
struct SelectedCall {
  const CallEntry* call = nullptr;
  std::vector<int64_t> batch;
  std::vector<int64_t> heads;
};

/// Catalogue of the attention calls in a folder with capture.json, in a folder of tensor files that
/// are told by their names, in one tensor file, or in bare tensors. Every file's header is opened
/// and validated at once; tensor data only when it is read, by files that may be closed in between.
/// Immutable; thread-safe.
class Capture {
 public:
  /// Whatever is read of the capture heeds `control` as long as it lives, in whatever thread, and
  /// so do its tensors; `control.files` is not looked at. A call of a folder that cannot be read is
  /// left out where others can (warnings()). Throws Error(file) when something is malformed or two
  /// sources of a fact disagree (naming both), or a file changes meanwhile, Error(usage) when an
  /// override cannot be meant.
  static Capture open(const std::filesystem::path& path, const FactOverrides& overrides = {},
                      const ReadControl& control = {});
  /// The additions to a capture since `before`, all of this path, were opened: a capture of the
  /// calls whose files none of them has, with the pictures that are there by now; it has no calls
  /// where only its pictures are others than the last one's. Nothing where neither has changed.
  /// `before` is not empty. Throws as open() does, Error(file) also where a call of `before` was
  /// recorded once more, Error(usage) where files are told by their names, which do not say when a
  /// call is complete.
  static std::optional<Capture> open_added(const std::filesystem::path& path,
                                           std::span<const Capture* const> before,
                                           const FactOverrides& overrides = {},
                                           const ReadControl& control = {});
  static Capture from_tensors(const BareTensors& tensors, const FactOverrides& overrides,
                              const ReadControl& control = {});

  const std::filesystem::path& path() const { return path_; }
  /// Model and prompt of the first call; each call has its own.
  const std::string& model() const { return calls_.front().model; }
  const std::string& prompt() const { return calls_.front().prompt; }
  /// Every file that was opened or is named as part of the capture.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const std::vector<FrameFile>& frames() const { return frames_; }
  /// Where the files were told by their names.
  const std::optional<NamedFolder>& named_folder() const { return named_; }
  /// `extra` of the whole capture as JSON text; may be empty.
  const std::string& extra() const { return extra_; }
  /// The forwards that a recorder saw, and what it refused.
  const ForwardLog& log() const { return log_; }
  /// Ascending by (step, layer, forward, branch, kind, place).
  const std::vector<CallEntry>& calls() const { return calls_; }
  /// Calls and pictures that could not be read and were left out. One printable line each, to be
  /// shown also where narration is not wanted.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// How many of its calls were.
  int64_t calls_left_out() const { return calls_left_out_; }
  /// Guesses, overrides, unknown keys, roundings: one printable line each (one_line()), to be shown
  /// on standard error.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<std::string>& unknown_keys() const { return unknown_keys_; }

  /// Bytes that the calls hold while the capture lives: their facts, words and tensors' places, not
  /// the tensors' data. An estimate.
  int64_t held_bytes() const;

  /// The selected calls in the capture's order; one is there several times where its batch items
  /// have other heads chosen. `missing` gets what the selection names and the capture lacks, a line
  /// each. Throws Error(usage) naming what exists where nothing is left.
  std::vector<SelectedCall> select(const CallSelection& selection,
                                   std::vector<std::string>* missing = nullptr) const;

  /// A hex digest a selected call over the bytes of the tensors that it uses (q, k, mask, and v
  /// where `with_values`) and the facts that decide its maps; independent of file times and names.
  /// Throws Error(interrupted) soon after a stop is requested, Error(file) as the files do.
  std::vector<std::string> call_hashes(const std::vector<SelectedCall>& selected, bool with_values,
                                       const std::stop_token& stop = {}) const;
  /// Of all of them together: join_call_hashes().
  std::string content_hash(const std::vector<SelectedCall>& selected, bool with_values,
                           std::stop_token stop = {}) const;

  /// Digests, one a call, of the facts that decide its maps and of which files it is read from:
  /// their place on the disk, size and time of modification. Reads nothing. What is kept under a
  /// stamp is of another call, or of another state of this one, as soon as a file was written to.
  std::vector<std::string> call_stamps() const;

  /// Throws Error(file) where a file that tensors were read from since it was opened is not as it
  /// was then. To be called before what was made of them is shown, kept or given its name.
  void require_unchanged() const;
  /// The files that require_unchanged() checks, for those who write for long.
  const std::shared_ptr<const InputSet>& inputs() const { return inputs_; }
  /// Opens one of frames(), which is a file of the capture's folder itself, never reached through a
  /// link. Throws Error(file).
  std::shared_ptr<const InputFile> open_frame(const FrameFile& frame) const;

 private:
  static Capture of_location(CaptureLocation location, const std::shared_ptr<InputSet>& inputs,
                             const FactOverrides& overrides, const ReadControl& control);

  std::filesystem::path path_;
  std::shared_ptr<const InputSet> inputs_;
  std::string extra_;
  ForwardLog log_;
  std::vector<std::filesystem::path> files_;
  std::vector<FrameFile> frames_;
  std::optional<NamedFolder> named_;
  std::vector<CallEntry> calls_;
  int64_t calls_left_out_ = 0;
  std::vector<std::string> warnings_, notes_, unknown_keys_;
};

/// The digest of a selection, of its calls' in their order: whoever has them makes it without
/// reading the tensors again. One call's is its own.
std::string join_call_hashes(const std::vector<std::string>& hashes);

}  // namespace attnscope
