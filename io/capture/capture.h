#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/selection.h"
#include "core/problem/attention_problem.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// Facts given on the command line; what is set overrides what was recorded, and Capture::notes()
/// says so.
struct FactOverrides {
  std::optional<std::string> layout;  ///< "bhsd" …
  std::optional<std::string> grid;    ///< "13x30x45"
  std::optional<std::string> text;    ///< "226@start"
  std::optional<std::string> scale;   ///< "auto" or a number
  std::optional<std::string> mask;    ///< "none", "causal", "window:N" or a tensor file FILE[:KEY]
  std::optional<std::string> preset;  ///< name of a ModelPreset: grid, text and head_dim to check
  ScoreFunction score = ScoreFunction::softmax;
  std::string mask_option = "--mask";  ///< how the command line calls `mask`
  std::optional<std::string> rope;     ///< "cogvideox" …: q and k are turned when they are read
  /// Where packed sequences begin and end: "0,9,24" or a tensor file FILE[:KEY]; packed_sequences.h
  std::optional<std::string> cu_seqlens;
  std::optional<std::string> cu_seqlens_k;  ///< the same of the keys, where it is another list
  std::optional<std::string>
      pattern;  ///< which files of a folder are which tensors; name_pattern.h

  /// Whether anything is set.
  bool any() const {
    return layout || grid || text || scale || mask || preset || rope || pattern || cu_seqlens ||
           cu_seqlens_k || score != ScoreFunction::softmax;
  }
};

/// Tensors without metadata: FILE or FILE:KEY each.
struct BareTensors {
  std::string q;
  std::string k;
  std::string v;  ///< may be empty
};

/// One call of a capture as it was recorded. `facts` holds every fact by the name that the capture
/// format gives it, as JSON text, with where it came from.
struct CallEntry {
  struct Fact {
    std::string json;    ///< the value as JSON
    std::string origin;  ///< "recorded", "option --grid", "default", "preset", "guessed: …"
  };
  std::filesystem::path file;
  CallId id;
  bool step_recorded = false, layer_recorded = false, branch_recorded = false;
  std::string layer_name, model, prompt;  ///< empty: not recorded
  std::optional<double> timestep;
  std::string q_state;                           ///< "qk_norm,rope"; empty: not recorded
  int64_t head_offset = 0;                       ///< of the first head, in the model
  std::vector<std::vector<std::string>> tokens;  ///< [batch item or 1][text token]; may be empty
  std::map<std::string, Fact> facts;
  std::vector<std::string> unknown_keys;                   ///< metadata and tensors not understood
  std::shared_ptr<const AttentionProblem> problem;         ///< validated
  std::shared_ptr<const TensorSource> lse, out, out_rows;  ///< null where not recorded
  std::shared_ptr<const TensorSource> mask;                ///< tensor mask in use, or null
};

/// What a capture says about itself as a whole.
struct FrameFile {
  std::filesystem::path file;
  int64_t t = 0;
};

/// A folder whose files were told by their names (name_pattern.h).
struct NamedFolder {
  std::string pattern;
  bool pattern_given = false;          ///< by --pattern; else one of the common ones
  std::vector<int64_t> steps, layers;  ///< in the names, ascending; empty: the pattern has none
  std::vector<int64_t> heads;
  int64_t files = 0;                  ///< that the pattern fits
  std::vector<std::string> left_out;  ///< names of the others, ascending
};

/// The chosen calls of a capture with the batch items and heads chosen in each.
struct SelectedCall {
  const CallEntry* call = nullptr;
  std::vector<int64_t> batch;
  std::vector<int64_t> heads;
};

/// What --steps --layers --heads --batch --branch --kind ask for.
struct CallSelection {
  Selection steps, layers, heads, batch;
  std::vector<std::string> branches;  ///< empty: all; otherwise exact names
  std::vector<std::string> kinds;     ///< empty: all
};

/// Catalogue of the attention calls in a folder with capture.json, in a folder of tensor files that
/// are told by their names, in one tensor file, or in bare tensors. Every file's header is opened
/// and validated at once; tensor data only when it is read. Immutable; thread-safe.
class Capture {
 public:
  /// Throws Error(file) when something is malformed or two sources of a fact disagree (naming
  /// both), Error(usage) when an override cannot be meant.
  static Capture open(const std::filesystem::path& path, const FactOverrides& overrides = {});
  static Capture from_tensors(const BareTensors& tensors, const FactOverrides& overrides);

  const std::filesystem::path& path() const { return path_; }
  /// What the first call recorded; each call has its own.
  const std::string& model() const { return calls_.front().model; }
  const std::string& prompt() const { return calls_.front().prompt; }
  /// Every file that was opened or is named as part of the capture.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const std::vector<FrameFile>& frames() const { return frames_; }
  /// Where the files were told by their names.
  const std::optional<NamedFolder>& named_folder() const { return named_; }
  /// `extra` of the whole capture as JSON text; may be empty.
  const std::string& extra() const { return extra_; }
  /// Ascending by (step, layer, branch, kind).
  const std::vector<CallEntry>& calls() const { return calls_; }
  /// Guesses, overrides, unknown keys, roundings: one printable line each (one_line()), to be shown
  /// on standard error.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<std::string>& unknown_keys() const { return unknown_keys_; }

  /// Throws Error(usage) naming what exists when something asked for does not, or nothing is left.
  std::vector<SelectedCall> select(const CallSelection& selection) const;

  /// Hex digest over the bytes of the tensors used by the selected calls (q, k, mask, and v where
  /// `with_values`) and the facts that decide their maps; independent of file times and names.
  /// Throws Error(interrupted) soon after a stop is requested.
  std::string content_hash(const std::vector<SelectedCall>& selected, bool with_values,
                           std::stop_token stop = {}) const;

 private:
  std::filesystem::path path_;
  std::string extra_;
  std::vector<std::filesystem::path> files_;
  std::vector<FrameFile> frames_;
  std::optional<NamedFolder> named_;
  std::vector<CallEntry> calls_;
  std::vector<std::string> notes_, unknown_keys_;
};

}  // namespace attnscope
