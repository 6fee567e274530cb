#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/diff/diff_options.h"
#include "cli/diff/pair_runner.h"
#include "io/pictures/picture_page.h"

namespace attnscope {

/// The forms of a difference that --product asks for.
enum class MapForm : uint8_t { pooled, frames, volume };

/// The words of --product.
std::vector<std::string> map_product_words();

/// The differences of pairs as maps, in a file or a picture (--product). Borrows all that it is
/// given.
class DiffMaps {
 public:
  /// Throws Error(usage) where what was asked for does not go together, or the pairs do not have
  /// it. `pairs` of a query's volume are cut to its rows.
  DiffMaps(const DiffOptions& options, const DiffSides& sides, std::vector<ComparedPair>& pairs);
  ~DiffMaps();

  MakePairSink sink_maker() const;
  /// The page of -o, with the memory that drawing takes; nothing where that is no picture.
  std::optional<PageSize> page() const;
  /// Compares all pairs and writes what it finds; `before_end` is asked before the output takes its
  /// name. Throws Error(interrupted) where it was stopped.
  void run(const PairRunner& runner, const RunPlan& plan, const std::stop_token& stop,
           const std::function<void()>& before_end, const Console& console) const;

 private:
  class Form;
  std::unique_ptr<const Form> form_;
};

}  // namespace attnscope
