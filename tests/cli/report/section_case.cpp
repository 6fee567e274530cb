#include "tests/cli/report/section_case.h"

#include <algorithm>
#include <memory>

#include "cli/common/capture_options.h"
#include "cli/run/stats_jobs.h"

namespace attnscope::test {

SectionCase::SectionCase(const std::filesystem::path& path, int64_t sample, int64_t memory)
    : capture_(Capture::open(path)),
      calls_(capture_.select(parse_selection({}))),
      run_(RunOptions{}, MemoryRoom(memory), console_, "report"),
      sample_(sample) {
  StatsChoice choice;
  choice.arrays = {HeadArray::frame_frame};
  choice.sample = sample;
  const StatsJobs jobs = make_stats_jobs(choice, calls_);
  MemoryBudget budget(int64_t{1} << 30);
  const ReductionPlan plan = plan_stats(choice, jobs, run_.backend(), budget, 2);
  measure_heads({console_, "report", run_.backend(), budget}, choice, jobs, plan,
                [&](HeadRecord record) { records_.push_back(std::move(record)); });
  sort_records(records_);
}

ReportWork SectionCase::work(std::optional<int> units) {
  const auto left = std::make_shared<int>(units.value_or(0));
  const bool endless = !units;
  return {run_,    capture_,
          calls_,  records_,
          sample_, [left, endless] { return endless || (*left)-- > 0; },
          {},      capture_.path().filename().string()};
}

bool lacks_text(const std::vector<std::string>& lacks, const std::string& text) {
  return std::any_of(lacks.begin(), lacks.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace attnscope::test
