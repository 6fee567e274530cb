#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/common/console.h"
#include "cli/report/report_facts.h"
#include "cli/report/report_options.h"
#include "cli/report/report_parts.h"
#include "cli/report/standing_heads.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The facts that all pages begin with. `subject`: "capture", "table", "export" or "pair".
OrderedJson first_facts(const ReportRequest& request, const std::string& subject,
                        const std::string& title);

/// The section "stands_out".
OrderedJson standing_facts(std::span<const StandingRule> rules);

/// The answer of --json, of a page that was written.
struct ReportAnswer {
  std::string capture_hash;  ///< empty: none
  OrderedJson heads = {};    ///< the rows of heads
  std::span<const ReportHead> names;
  std::span<const StandingRule> rules;
  std::vector<HeadName> not_reached;
  OrderedJson pairs = OrderedJson::array();  ///< of two captures
};

/// Makes the page fit, writes it, says so, and prints the answer where that was asked for.
void write_report(const ReportRequest& request, ReportParts& parts, const ReportAnswer& answer,
                  const Console& console);

}  // namespace attnscope
