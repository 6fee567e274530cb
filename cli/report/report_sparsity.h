#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/report_work.h"

namespace attnscope {

/// Entries that a sampled report measures masks on: about two seconds on two cores.
inline constexpr double kMaskEntries = 1.5e8;

/// The section `sparsity`: how few keys hold most of the mass, what sparse patterns would keep,
/// where mass gathers. Parts that cannot be told are left out, and `lacks` gets a line that says
/// why; nothing where none can. What the patterns keep is of MaskMeasurement::kSampledRows rows of
/// each head, as `mask` takes them, of all heads, or of with `work.sample`
/// as many as cost no more than kMaskEntries, but two a layer. Throws Error(interrupted), and what
/// reading the capture throws.
std::optional<ReportSection> sparsity_section(ReportWork& work, std::vector<std::string>& lacks);

/// The same of a table of records that no capture is there for.
std::optional<ReportSection> sparsity_of_records(std::span<const HeadRecord> records,
                                                 std::vector<std::string>& lacks);

/// Of `heads` heads in some order, `count` (at least 1) evenly spread ones, the first and the last
/// among them where there are two: their places, ascending; all where there are no more.
std::vector<size_t> spread_places(size_t heads, size_t count);

}  // namespace attnscope
