#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report/report_work.h"

namespace attnscope {

/// The section `sparsity`: how few keys hold most of the mass, what sparse patterns would keep,
/// where mass gathers. Parts that cannot be told are left out, and `lacks` gets a line that says
/// why; nothing where none can. What the patterns keep is of MaskMeasurement::kSampledRows rows of
/// each head, as `mask` takes them, of all heads, or of those that chosen_heads() takes with
/// `work.sample`. Throws Error(interrupted), and what reading the capture throws.
std::optional<ReportSection> sparsity_section(ReportWork& work, std::vector<std::string>& lacks);

/// The same of a table of records that no capture is there for.
std::optional<ReportSection> sparsity_of_records(std::span<const HeadRecord> records,
                                                 std::vector<std::string>& lacks);

/// Of `heads` heads in some order, `count` (at least 1) evenly spread ones, the first and the last
/// among them where there are two: their places, ascending; all where there are no more.
std::vector<size_t> spread_places(size_t heads, size_t count);

}  // namespace attnscope
