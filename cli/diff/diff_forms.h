#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "cli/diff/diff_options.h"
#include "cli/diff/diff_pictures.h"
#include "cli/diff/pair_runner.h"
#include "io/files/json_types.h"
#include "io/pictures/colour_scale.h"
#include "io/results/pair_maps_hdf5.h"

namespace attnscope {

/// The pairs that are compared, their sides, and the options of the command. Borrowed.
struct DiffJob {
  const DiffOptions& options;
  const DiffSides& sides;
  const std::vector<ComparedPair>& pairs;
};

/// How it is run.
struct DiffRunning {
  const PairRunner& runner;
  const RunPlan& plan;
  MakePairSink make;
  std::stop_token stop;
  std::function<void()> before_end;  ///< asked before an output takes its name
  const Console& console;

  void stream(const std::vector<ComparedPair>& pairs, const TakePairSink& take) const {
    runner.run(pairs, plan, make, take, stop);
  }
};

/// One form of a difference.
class DiffForm {
 public:
  virtual ~DiffForm() = default;
  virtual std::unique_ptr<PairSink> make_sink(const ComparedPair& pair) const = 0;
  /// The page that is drawn; nothing where -o is no picture.
  virtual std::optional<PageSize> page() const = 0;
  /// Compares, writes, reports. The caller holds the memory of the page.
  virtual void run(const DiffRunning& running) const = 0;
};

/// Each throws Error(usage) where the pairs do not have it.
std::unique_ptr<const DiffForm> make_pooled_form(const DiffJob& job, int64_t block);
std::unique_ptr<const DiffForm> make_frame_form(const DiffJob& job);
/// Cuts `pairs`, which are the job's, to the chosen rows.
std::unique_ptr<const DiffForm> make_volume_form(const DiffJob& job,
                                                 std::vector<ComparedPair>& pairs);

/// {"format": "attnscope-diff-maps/1", "a", "b", "product", "pairs": [{"a", "b", "stored_a",
/// "stored_b"}]}.
OrderedJson maps_json(const DiffJob& job);
/// A file's attributes and pairs, without axes and variables.
PairMapsLayout maps_layout(const DiffJob& job);
/// The picture of -o.
PictureTarget picture_target(const DiffOptions& options);
/// The scale that --colour-scale names; `usual` without it.
ScaleKind map_scale(const DiffOptions& options, ScaleKind usual);
/// Says that it was written; prints the JSON with --json.
void report_maps(const DiffJob& job, const Console& console, const OrderedJson& json);

}  // namespace attnscope
