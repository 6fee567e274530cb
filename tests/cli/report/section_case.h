#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/console.h"
#include "cli/report/report_work.h"
#include "cli/run/stream_run.h"
#include "core/heads/head_record.h"
#include "io/capture/capture.h"

namespace attnscope::test {

/// A capture whose heads were measured, as sections of a report find it.
class SectionCase {
 public:
  /// Heads' numbers are of `sample` rows each; 0: of all.
  explicit SectionCase(const std::filesystem::path& path, int64_t sample = 0,
                       int64_t memory = int64_t{256} << 20);
  SectionCase(const SectionCase&) = delete;
  SectionCase& operator=(const SectionCase&) = delete;

  /// For a section; time is left for `units` units of work, for all where there is no number.
  ReportWork work(std::optional<int> units = {});
  const std::vector<HeadRecord>& records() const { return records_; }

 private:
  Console console_{true};
  Capture capture_;
  std::vector<SelectedCall> calls_;
  StreamRun run_;
  std::vector<HeadRecord> records_;
  int64_t sample_;
};

/// True where a line of `lacks` has the text.
bool lacks_text(const std::vector<std::string>& lacks, const std::string& text);

}  // namespace attnscope::test
