#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/console.h"
#include "cli/common/parser.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Values of the options that say *what to open*: a capture, or bare tensors, and facts that
/// override the recorded ones.
struct CaptureOptions {
  std::string capture;
  std::vector<std::string> more;  ///< further files behind it: empty once the options are parsed
  BareTensors tensors;
  std::string tensors_note;       ///< which of the files became which of the tensors; or empty
  FactOverrides texts;            ///< kTextFacts, and what `mask` is called
  std::vector<std::string> told;  ///< NAME=VALUE each
  std::string links = "refuse";
  std::string score = "softmax";
  bool growing = false;  ///< a recorder may still add to the capture
};
/// Values of the options that say *how to compute*.
struct RunOptions {
  std::string memory;  ///< empty: the smaller of 2 GiB and half of what is free
  int threads = 0;
  std::string backend = "auto";
  std::string vram;  ///< empty: the backend chooses
  bool tf32 = false;
  bool profile = false;
  int task = 0, tasks = 1;  ///< of several processes on one host (HostTask); no option
};

/// Headings of the help under which options stand that say what to open, what is true of it, and
/// which calls and heads.
inline constexpr const char* kTensorOptions = "Bare tensors instead of a capture";
inline constexpr const char* kFactOptions = "Facts (override what was recorded, and say so)";
inline constexpr const char* kSelectionOptions =
    "Selection (lists: 0,3-7  8-  all  last  !4  0-39:5)";

/// Adds CAPTURE --q --k --v --pattern --layout --grid --text --scale --preset --rope --cu-seqlens
/// --cu-seqlens-k --as, and --mask --score.
/// A command whose --mask means something else names the call's own mask otherwise.
/// Files named together whose names say q and k (q.pt k.pt) become the bare tensors.
void add_capture_options(CommandParser& command, CaptureOptions& options,
                         const char* mask_option = "--mask");
/// Adds them to a command that has a second CAPTURE, `second`, which is empty where that and the
/// first become the bare tensors.
void add_capture_options_of_two(CommandParser& command, CaptureOptions& options,
                                std::string& second);
/// The score of the selected calls, recorded or by option; "mixed" where they have several.
std::string score_text(const std::vector<SelectedCall>& calls);
/// The facts that --as states (NAME=VALUE each), by name. Throws Error(usage) where one is stated
/// twice, or as parse_told_fact() does.
std::map<std::string, std::string> told_facts(const std::vector<std::string>& told);
/// Facts that the options override. Throws Error(usage) for a score that does not exist.
FactOverrides fact_overrides(const CaptureOptions& options);
/// How captures are read: until the command is stopped, with a progress display for long reads,
/// within --memory and by --links. Throws Error(usage) unless --links is refuse or follow.
ReadControl read_control(const CaptureOptions& options, const RunOptions& run,
                         const Console& console);
/// Opens it. Throws Error(usage) when neither or both were given.
Capture read_capture(const CaptureOptions& options, const RunOptions& run, const Console& console);
/// Opens it, and says its warnings and notes.
Capture open_any_capture(const CaptureOptions& options, const RunOptions& run,
                         const Console& console);
/// Opens a capture whose calls have all of their tokens: Error(file) where one of several
/// processes recorded its part.
Capture open_capture(const CaptureOptions& options, const RunOptions& run, const Console& console);

/// Values of the options that say *which calls and heads*.
struct SelectionOptions {
  std::string steps = "all", layers = "all", heads = "all", batch = "all";
  std::vector<std::string> branches, kinds, blocks, slots;
  std::string chunks = "all";
  std::vector<std::string> pick;          ///< heads one by one, as HeadPattern::parse() reads them
  std::string from;                       ///< a file with a list of heads; empty: none
  std::optional<std::string> where = {};  ///< as HeadCondition::parse() reads it
  std::string cache = {};                 ///< --cache, as cache_folders() reads it
  /// The heads of `from`, read when the command line is known to be right.
  std::shared_ptr<const HeadSet> listed = nullptr;
  /// The heads that `where` holds for, where it compares numbers: settle_where() finds them.
  std::shared_ptr<const std::set<HeadName>> holding = nullptr;

  friend bool operator==(const SelectionOptions&, const SelectionOptions&) = default;
};
/// Adds --steps --layers --heads --batch --chunks --branch --kind --blocks --slots --pick --from
/// --where --cache.
void add_selection_options(CommandParser& command, SelectionOptions& options);
/// Throws Error(usage) for what is no selection, and where --where compares numbers and nothing has
/// found them.
CallSelection parse_selection(const SelectionOptions& options);
/// True where --where compares numbers that are still to be found.
bool asks_for_numbers(const SelectionOptions& options);
/// Throws Error(usage) where a call is there several times, since its batch items have other heads
/// chosen; `by_branch`: only where these items are of one branch. `what` is what has no room for
/// it.
void require_equal_heads(std::span<const SelectedCall> calls, std::string_view what,
                         bool by_branch = false);
/// The selection as an output records it among its options; chunks, blocks, slots, picked heads
/// and the digest of a list of them only where they are restricted.
OrderedJson selection_json(const SelectionOptions& options);

/// Adds --memory --threads --backend --vram --tf32 --profile.
void add_run_options(CommandParser& command, RunOptions& options);
/// Bytes that --memory stands for.
int64_t memory_limit(const RunOptions& options);
/// The bytes of --memory that the capture's list of calls takes: those beyond a small allowance,
/// which is not counted.
int64_t counted_bytes(const Capture& capture);
/// The room that --memory leaves for a run beside the capture's list of calls. Throws
/// Error(resource) where it leaves none.
MemoryRoom memory_beside(const Capture& capture, const RunOptions& options);

}  // namespace attnscope
