#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/console.h"
#include "core/stream/tile_sink.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/lab/edit_choice.h"
#include "io/lab/edit_plan.h"
#include "io/lab/kernel_config.h"

namespace attnscope {

/// The numbers that a choice goes by, of the lab's lines: of each head one an edit, in the order of
/// `heads`.
std::vector<EditNumbers> choice_numbers(const OrderedJson& lines, std::span<const HeadTask> heads);

/// Files that kernels read a plan from, as --config and --config-fact name them.
class ConfigFiles {
 public:
  /// `out`: a file that the run writes as well, if any. Throws Error(usage) where the words cannot
  /// be meant.
  ConfigFiles(const std::vector<std::string>& configs, const std::vector<std::string>& facts,
              const std::filesystem::path& out);

  bool empty() const { return files_.empty(); }
  /// Throws Error(usage) where no file can be made of such a plan.
  void check(const EditPlan& plan, std::span<const HeadTask> heads) const;
  /// Throws where one of them cannot be written.
  void check_targets(const OutputFileOptions& options) const;
  /// Writes them, and says what they do not say. `heads`: of which the plan is.
  void write(const EditPlan& plan, std::span<const HeadTask> heads,
             const OutputFileOptions& options, const Console& console) const;

 private:
  /// With what the heads' calls tell.
  ConfigFacts facts_of(std::span<const HeadTask> heads) const;

  std::vector<std::pair<ConfigFormat, std::filesystem::path>> files_;
  ConfigFacts facts_;
};

/// For people on standard output: a line a scope.
void print_plan(const EditPlan& plan);

}  // namespace attnscope
