#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/lab/lab_options.h"
#include "cli/lab/lab_report.h"
#include "cli/mask/choice_run.h"
#include "core/base/error.h"
#include "core/patterns/edit_sweep.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/scored_blocks.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/results/head_tables.h"

namespace attnscope {
namespace {

class LabRun final : public ChoiceRun {
 public:
  LabRun(LabOptions& options, Team& team, const Console& console)
      : ChoiceRun("lab", options, team, console), o_(options) {}

 private:
  void check_options() override;
  std::vector<std::string> words() const override { return edits_; }
  std::vector<MaskChoice> parse() override;
  OrderedJson own_options() const override {
    return {{"edits", edits_}, {"block", o_.block}, {"exact", o_.exact}};
  }
  int64_t record_bytes() const override { return std::ssize(edits_) * (4 << 10); }
  int64_t kept_bytes(const HeadTask& task) override;
  int64_t measuring_bytes(const HeadTask& task) override {
    MaskMeasurement least = how();
    least.sampled_alone = !o_.exact;
    return least_measurement_bytes(task, edits_.size(), least);
  }
  void check_output(const OutputFileOptions& file) override {
    if (!o_.out.empty()) OutputFile::check_target(o_.out, file);
  }
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  /// A part says which it is, also where it is only printed.
  bool has_origin() const override { return !o_.out.empty() || (o_.json && part()); }
  OrderedJson measure_head(const HeadTask& head,
                           const std::function<void(double)>& progress) override;
  void check_line(const OrderedJson& line) const override { check_lab_row(line); }
  void write_file(const std::filesystem::path& path) override {
    write_mask_table(result(), std::filesystem::path(o_.out).extension().string(), path);
  }
  std::string written_text() const override { return fmt::format("{} rows", all_lines().size()); }
  OrderedJson result() const override;
  void print_table() const override {
    if (o_.csv) {
      fmt::print("{}", mask_csv(result().at("heads")));
    } else {
      print_lab_table(all_lines());
    }
  }
  MaskMeasurement how() { return {backend(), budget(), stop(), o_.exact}; }

  const LabOptions& o_;
  std::vector<std::string> edits_;
};

void LabRun::check_options() {
  if (o_.edits.empty()) {
    throw usage_error(
        "lab needs --edit: sol:tau=1, vsa:keep=0.1/0.2/0.3, sta, dense … (attnscope lab --help)");
  }
  check_table_name(o_.out, o_.shard);
  for (const std::string& text : o_.edits) {
    for (std::string& edit : swept_edits(text, "--edit")) {
      const bool twice = std::find(edits_.begin(), edits_.end(), edit) != edits_.end();
      if (!twice) edits_.push_back(std::move(edit));
    }
  }
}

std::vector<MaskChoice> LabRun::parse() {
  BlockSize block;
  if (o_.block > 0) block.told = o_.block;
  std::vector<MaskChoice> choices;
  bool any_file = false;
  for (const std::string& edit : edits_) {
    choices.push_back(MaskChoice::parse(edit, block, budget(), "--edit"));
    any_file |= std::filesystem::path(edit).extension() == ".npy";
  }
  if (o_.block > 0 && !any_file) {
    throw usage_error(fmt::format(
        "--block {}: is of --edit FILE.npy (an edit's own: topk:block={})", o_.block, o_.block));
  }
  return choices;
}

/// The edits, and the scores that are kept from one to the next.
int64_t LabRun::kept_bytes(const HeadTask& task) {
  int64_t bytes = 0, scores = 0;
  for (const MaskChoice& choice : choices()) {
    bytes += choice.bytes(*task.problem);
    scores = std::max(scores, choice.least_build_bytes(*task.problem, backend()));
  }
  return bytes + scores;
}

/// Tells of outputs that nobody recorded, too.
void LabRun::check(const CheckedRun& scope, std::span<const HeadTask> own) {
  const bool any_without = std::any_of(heads().begin(), heads().end(),
                                       [](const HeadTask& head) { return !head.problem->v(); });
  if (team_.is_first() && any_without) {
    console_.say("note: a call has no v: there are no numbers of its outputs");
  }
  ChoiceRun::check(scope, own);
}

OrderedJson LabRun::measure_head(const HeadTask& head,
                                 const std::function<void(double)>& progress) {
  const MemoryReservation reserved = budget().reserve(kept_bytes(head), "the edits of a head");
  ScoreKeeper keeper;
  std::vector<MeasuredEdit> edits;
  for (Mask& mask : build(head, &keeper)) {
    edits.push_back({std::move(mask), choices()[edits.size()].own_block()});
  }
  const std::vector<MaskQuality> found = measure_edits(head, edits, how(), progress);
  OrderedJson lines = OrderedJson::array();
  for (size_t m = 0; m < edits.size(); ++m) {
    lines.push_back(
        lab_row(head_name(head.problem->id(), head.batch, head.head), edits_[m], found[m]));
  }
  return lines;
}

OrderedJson LabRun::result() const {
  OrderedJson json = result_head("attnscope-lab/1");
  json["heads"] = all_lines();
  return json;
}

}  // namespace

Command add_lab_command(CLI::App& app) {
  auto options = std::make_shared<LabOptions>();
  LabOptions& o = *options;
  CommandParser command(
      app, "lab",
      "what a kernel's choice of blocks costs every head, and what stands in for the rest");
  add_lab_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope lab dump/ --edit sol:tau=0.5/1/2 --edit vsa:keep=0.1 --layers 12\n"
      "  attnscope lab dump/ --edit 'sla:keep=0.05..0.5:10,rest=row' -o curve.csv\n"
      "  attnscope lab dump/ --edit block-oracle:keep=0.1 --edit subblock:keep=0.1 --exact");
  return {command, [options] { return run_heads<LabRun>(*options); }};
}

}  // namespace attnscope
