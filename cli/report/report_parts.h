#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/report_heads.h"
#include "cli/report/report_looks.h"
#include "cli/report/report_work.h"
#include "core/base/memory_budget.h"
#include "io/capture/capture.h"
#include "io/files/json_types.h"
#include "web/report/report_page.h"

namespace attnscope {

/// A recorded picture of the video.
struct ReportPicture {
  NamedBytes data;
  std::string type;   ///< "image/png"
  int64_t frame = 0;  ///< latent
  MemoryReservation held;
};

/// The pictures of a capture, one a latent frame: of several the middle one. What cannot be read is
/// a line of `problems`.
std::vector<ReportPicture> read_pictures(const Capture& capture, MemoryBudget& budget,
                                         std::vector<std::string>& problems);
/// [latent frame]: which of the pictures; −1: none.
std::vector<int64_t> places_of_pictures(const std::vector<ReportPicture>& pictures);

/// The section "maps" of heads whose maps are small: one size for all, to which maps of fewer cells
/// are stretched.
ReportSection small_maps(const std::vector<MeasuredHead>& heads, std::vector<std::string>& lacks);

/// All that a page is made of, in pieces that can be left out. Not copied.
struct ReportParts {
  OrderedJson facts;  ///< without what follows
  std::vector<std::string> lacks, problems;
  std::vector<ReportLook> looks;
  std::optional<ReportSection> maps, words, sparsity;
  std::vector<ReportPicture> pictures;
  std::vector<std::unique_ptr<HeldFigure>> figures;
  PageStyle style = PageStyle::reader;

  OrderedJson joined_facts() const;
  /// Borrows `facts` and the parts.
  ReportPage page(const OrderedJson& facts) const;
  int64_t bytes() const;
};

/// Leaves out what makes the page larger than `most`, and says so in its lacks: figures, then the
/// larger maps with their films, both from the page's last one on, the small maps, the pictures,
/// the words, the section on sparsity. Throws Error(usage) naming `option` where even the rest is
/// larger.
void fit_page(ReportParts& parts, int64_t most, const std::string& option);

}  // namespace attnscope
