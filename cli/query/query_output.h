#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "cli/common/console.h"
#include "cli/query/query_summary.h"
#include "cli/query/query_tasks.h"
#include "core/base/number_order.h"
#include "io/results/volume_output.h"

namespace attnscope {

/// The sequence that volumes show, and what they were made of.
struct ShownSequence {
  const TokenGrid& tokens;
  bool reverse = false;  ///< the tokens are queries
  std::vector<std::filesystem::path> inputs;
};

/// How volumes are written, and what is drawn of them.
struct VolumeOutput {
  VolumeFormat format = VolumeFormat::npy;
  FilmStyle film;
  std::optional<PageSize> page;  ///< of a picture

  /// The picture as plans tell it, and the memory that drawing it takes; nothing without one.
  std::optional<PlannedPicture> planned() const;
  MemoryReservation reserve(MemoryBudget& budget) const;
};

/// What the name of -o asks for, which is given; checks what can be checked before the work:
/// the volumes of the sequence that are to be written, which need no values yet. Throws
/// Error(usage) where the name, the picture's options or the sequence do not suit, Error(file) for
/// a target that cannot be written.
VolumeOutput choose_volume_output(const HeadRunOptions& run, const PictureOptions& page,
                                  const ShownSequence& shown, const QueryVolumes& volumes);
/// choose_volume_output() of a query, or nothing without -o; Error(usage) too where what it writes
/// has no --track.
std::optional<VolumeOutput> choose_output(const QueryRequest& request, const ShownSequence& shown,
                                          const QueryVolumes& volumes);

/// The values that were found for the volumes.
struct FoundValues {
  std::vector<std::vector<float>> values;  ///< a volume each, of every token of the sequence shown
  std::vector<double> lse;                 ///< a volume each, or NaN; empty: of none of them
};

/// Gives the volumes their values where they are written; returns the summaries where they are
/// printed, else none. `shown`: the sequence that the volumes show.
std::vector<QuerySummary> set_all_values(const QueryRequest& request, const TokenGrid& shown,
                                         FoundValues found, QueryVolumes& volumes);

/// The volumes as a .csv has them, on standard output.
void print_volumes_csv(const QueryVolumes& volumes);

/// Says which file was written, of how many heads or means. `origin`: " of an export" or empty.
void say_written(const QueryRequest& request, const QueryVolumes& volumes, const Console& console,
                 const std::string& origin = "");

/// The order of --sort. Throws Error(usage) where heads have no such number.
NumberOrder order_of(const QueryRequest& request);
/// Throws Error(usage) where --sort is by row sums and each head has a mean over so many rows.
void check_order(const QueryRequest& request, size_t rows);

/// On standard output the summaries of all heads, in the order of --sort: as JSON with --json, as
/// text without -o; or with `-o -` the volumes as a .csv.
void print_summaries(const QueryRequest& request, const QueryVolumes& volumes,
                     std::vector<QuerySummary> heads);

}  // namespace attnscope
