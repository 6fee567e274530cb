#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "core/heads/head_record.h"
#include "io/files/json_types.h"

namespace attnscope {

/// A head of a page, whatever it was found in.
struct ReportHead {
  HeadName name;
  std::string head_class;  ///< empty: not known
  int side = 0;            ///< of two captures
};

/// Names of heads as the page has them, "L2 H0": steps, branches, batch items, slots and kinds
/// stand in them where heads differ in them.
std::vector<std::string> short_head_names(std::span<const ReportHead> heads);

/// A number of heads: its name among the numbers of `stats`, or another table's.
struct ReportColumn {
  std::string name;
  std::vector<double> values, errors;  ///< [heads]; NaN where undefined; no errors: empty
};
/// Those that some head has, in the order of head_fields().
std::vector<ReportColumn> columns_of(std::span<const HeadRecord> records);

/// The sections "heads", "numbers" and "classes" of the facts. `command`: "attnscope stats NAME".
void add_heads(OrderedJson& facts, std::span<const ReportHead> heads,
               std::span<const ReportColumn> columns, const std::string& command);

/// The options of a selection, " --layers 3 --pick 2.7"; as they were given.
std::string selection_words(const SelectionOptions& selection);
/// The options that choose a head alone, " --step 10 --layers 3 --heads 2".
std::string head_options(const HeadName& name);

/// `text` without the folders of `path`, which stay on the machine.
std::string without_folders(std::string text, const std::filesystem::path& path);

}  // namespace attnscope
