#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/lab/lab_options.h"
#include "cli/lab/lab_plan.h"
#include "cli/lab/lab_report.h"
#include "cli/mask/choice_run.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/patterns/edit_sweep.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/scored_blocks.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/files/posix_file.h"
#include "io/lab/edit_choice.h"
#include "io/lab/edit_plan.h"
#include "io/results/head_tables.h"

namespace attnscope {
namespace {

/// What a plan's "dense" is among masks.
std::string measured_edit(const std::string& edit) { return edit == kDenseEdit ? "none" : edit; }

class LabRun final : public ChoiceRun {
 public:
  LabRun(LabOptions& options, Team& team, const Console& console)
      : ChoiceRun("lab", options, team, console), o_(options) {}

 private:
  void check_options() override;
  void read_plan();
  void add_edits(const std::string& text, const std::string& option);
  /// Files whose content decides the numbers.
  std::vector<std::string> words() const override;
  std::vector<MaskChoice> parse() override;
  void check_calls() override;
  void check_choice() const;
  OrderedJson own_options() const override;
  size_t lines_of_head() const override { return plan_ ? 1 : edits_.size(); }
  int64_t record_bytes() const override { return std::ssize(edits_) * (4 << 10); }
  int64_t kept_bytes(const HeadTask& task) override;
  int64_t measuring_bytes(const HeadTask& task) override {
    MaskMeasurement least = how();
    least.sampled_alone = !o_.exact;
    return least_measurement_bytes(task, edits_.size(), least) + picked_bytes(task, o_.exact);
  }
  /// They refer to `inputs_`.
  OutputFileOptions config_options() {
    inputs_ = inputs();
    return {.force = o_.force, .inputs = inputs_};
  }
  void check_output(const OutputFileOptions& file) override {
    if (!o_.out.empty()) OutputFile::check_target(o_.out, file);
    configs_->check_targets(config_options());
  }
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  /// A part says which it is, also where it is only printed; a plan of which capture it is.
  bool has_origin() const override {
    return !o_.out.empty() || !target_.empty() || (o_.json && part());
  }
  OrderedJson measure_head(const HeadTask& head,
                           const std::function<void(double)>& progress) override;
  void check_line(const OrderedJson& line) const override { check_lab_row(line); }
  void before_writing() override;
  void write_file(const std::filesystem::path& path) override;
  std::string written_text() const override {
    if (!target_.empty()) return fmt::format("{} scopes", chosen_.scopes.size());
    return fmt::format("{} rows", all_lines().size());
  }
  OrderedJson result() const override;
  void print_table() const override;
  MaskMeasurement how() { return {backend(), budget(), stop(), o_.exact}; }

  const LabOptions& o_;
  std::vector<std::string> edits_;
  std::string target_;
  EditScope per_ = EditScope::head;
  std::optional<EditPlan> plan_;  ///< that is measured again
  EditPlan chosen_;
  std::optional<ConfigFiles> configs_;
  std::vector<std::filesystem::path> inputs_;
};

void LabRun::check_options() {
  target_ = o_.target;
  per_ = parse_edit_scope(o_.per);
  if (!target_.empty()) parse_target(target_);
  if (!o_.plan.empty()) read_plan();
  for (const std::string& text : o_.edits) add_edits(text, "--edit");
  for (const std::string& name : o_.among) add_edits(usual_sweep(name), "--among");
  if (edits_.empty()) {
    throw usage_error(
        "lab needs --edit: sol:tau=1, vsa:keep=0.1/0.2/0.3, sta, dense … (attnscope lab --help)");
  }
  const bool of_target = !o_.among.empty() || o_.hold_out > 0 || o_.per != "head";
  if (of_target && target_.empty()) {
    throw usage_error("--among, --per and --hold-out are of --target, which chooses an edit");
  }
  configs_.emplace(o_.configs, o_.config_facts, o_.out);
  if (!configs_->empty() && target_.empty() && !plan_) {
    throw usage_error("--config: is of --target or --plan, which have an edit for each head");
  }
  if (target_.empty()) return check_table_name(o_.out, o_.shard);
  if (!o_.out.empty()) require_ending(o_.out, {".json"});
  refuse_shard(o_.shard, "--target chooses once all heads are measured");
  if (!team_.is_alone()) throw usage_error("--target: chooses in one process (--alone)");
  if (o_.csv) throw usage_error("-o -: a plan is a .json (--json prints it)");
}

void LabRun::read_plan() {
  if (!o_.edits.empty() || !target_.empty()) {
    throw usage_error("--plan: has its own edits; --edit and --target go without it");
  }
  plan_ = read_edit_plan(o_.plan);
  edits_.emplace_back("none");
  for (const PlanScope& scope : plan_->scopes) {
    const std::string edit = measured_edit(scope.edit);
    if (std::find(edits_.begin(), edits_.end(), edit) == edits_.end()) edits_.push_back(edit);
  }
}

void LabRun::add_edits(const std::string& text, const std::string& option) {
  for (std::string& edit : swept_edits(text, option)) {
    const bool twice = std::find(edits_.begin(), edits_.end(), edit) != edits_.end();
    if (!twice) edits_.push_back(std::move(edit));
  }
}

std::vector<std::string> LabRun::words() const {
  std::vector<std::string> words = edits_;
  if (plan_) words.push_back(o_.plan);
  return words;
}

OrderedJson LabRun::own_options() const {
  OrderedJson options{{"edits", edits_}, {"block", o_.block}, {"exact", o_.exact}};
  if (plan_) options["plan"] = std::filesystem::path(o_.plan).filename().string();
  return options;
}

std::vector<MaskChoice> LabRun::parse() {
  BlockSize block;
  if (o_.block > 0) block.told = o_.block;
  std::vector<MaskChoice> choices;
  bool any_file = false;
  for (const std::string& edit : edits_) {
    choices.push_back(MaskChoice::parse(edit, block, budget(), plan_ ? o_.plan + ":" : "--edit"));
    any_file |= std::filesystem::path(edit).extension() == ".npy";
  }
  if (o_.block > 0 && !any_file) {
    throw usage_error(fmt::format(
        "--block {}: is of --edit FILE.npy (an edit's own: topk:block={})", o_.block, o_.block));
  }
  return choices;
}

/// A plan is of the calls that it was made for.
void LabRun::check_calls() {
  if (!target_.empty()) check_choice();
  if (!plan_) return;
  for (const HeadTask& head : heads()) {
    check_shapes(*plan_, head_name(head.problem->id(), head.batch, head.head),
                 head.problem->num_queries(), head.problem->num_keys(), o_.plan);
  }
  configs_->check(*plan_, heads());
}

/// Finds before anything is measured why no plan, or no file of one, could be made of the heads.
void LabRun::check_choice() const {
  if (heads().empty()) return;
  const EditTarget target = parse_target(target_);
  std::vector<EditNumbers> dense;
  for (const HeadTask& head : heads()) {
    const HeadName name = head_name(head.problem->id(), head.batch, head.head);
    if (target.is_error() && !head.problem->v()) {
      throw usage_error(fmt::format("--target {}: {} has no v, and so no output: choose by recall",
                                    one_line(target_), head_words(name)));
    }
    dense.push_back({.head = name,
                     .edit = kDenseEdit,
                     .queries = head.problem->num_queries(),
                     .keys = head.problem->num_keys()});
  }
  configs_->check(choose_edits(dense, target, per_, o_.hold_out), heads());
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

/// Tells of outputs that nobody recorded, and of a plan that was chosen for another capture.
void LabRun::check(const CheckedRun& scope, std::span<const HeadTask> own) {
  const bool any_without = std::any_of(heads().begin(), heads().end(),
                                       [](const HeadTask& head) { return !head.problem->v(); });
  if (team_.is_first() && any_without) {
    console_.say("note: a call has no v: there are no numbers of its outputs");
  }
  const std::string name = capture().path().filename().string();
  if (team_.is_first() && plan_ && !plan_->capture.empty() && plan_->capture != name) {
    console_.say(fmt::format("note: {} was chosen for {}, and is measured on {}", o_.plan,
                             one_line(plan_->capture), one_line(name)));
  }
  ChoiceRun::check(scope, own);
}

OrderedJson LabRun::measure_head(const HeadTask& head,
                                 const std::function<void(double)>& progress) {
  const MemoryReservation reserved = budget().reserve(kept_bytes(head), "the edits of a head");
  const HeadName name = head_name(head.problem->id(), head.batch, head.head);
  ScoreKeeper keeper;
  std::vector<std::string> texts = edits_;
  if (plan_) {
    const PlanScope* const of_head = scope_of(*plan_, name);
    texts = {measured_edit(of_head == nullptr ? kDenseEdit : of_head->edit)};
  }
  std::vector<MeasuredEdit> edits;
  for (const std::string& text : texts) {
    const auto place = std::find(edits_.begin(), edits_.end(), text) - edits_.begin();
    const MaskChoice& choice = choices()[static_cast<size_t>(place)];
    edits.push_back(
        {choice.build(*head.problem, selected_head(head), {backend(), budget(), stop(), &keeper}),
         choice.own_block()});
  }
  const std::vector<MaskQuality> found = measure_edits(head, edits, how(), progress);
  OrderedJson lines = OrderedJson::array();
  for (size_t m = 0; m < edits.size(); ++m) lines.push_back(lab_row(name, texts[m], found[m]));
  return lines;
}

void LabRun::before_writing() {
  if (!target_.empty()) {
    const std::vector<EditNumbers> numbers = choice_numbers(all_lines(), heads());
    chosen_ = choose_edits(numbers, parse_target(target_), per_, o_.hold_out);
    chosen_.capture = origin().at("capture").get<std::string>();
    chosen_.capture_hash = origin().at("capture_hash").get<std::string>();
  }
  if (configs_->empty()) return;
  configs_->write(plan_ ? *plan_ : chosen_, heads(), config_options(), console_);
}

void LabRun::write_file(const std::filesystem::path& path) {
  if (target_.empty()) {
    return write_mask_table(result(), std::filesystem::path(o_.out).extension().string(), path);
  }
  const std::string text = edit_plan_text(chosen_);
  PosixFile file(path, PosixFile::Mode::create);
  file.write_at(std::as_bytes(std::span(text)), 0);
  file.close();
}

OrderedJson LabRun::result() const {
  if (!target_.empty()) return OrderedJson::parse(edit_plan_text(chosen_));
  OrderedJson json = result_head("attnscope-lab/1");
  json["heads"] = all_lines();
  return json;
}

void LabRun::print_table() const {
  if (!target_.empty()) return print_plan(chosen_);
  if (o_.csv) {
    fmt::print("{}", mask_csv(result().at("heads")));
  } else {
    print_lab_table(all_lines());
  }
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
      "  attnscope lab dump/ --edit block-oracle:keep=0.1 --edit subblock:keep=0.1 --exact\n"
      "  attnscope lab dump/ --among sol,vsa,topk --target 'output_error<=0.1' -o plan.json\n"
      "  attnscope lab dump/ --plan plan.json --config vllm-omni=attention.json");
  return {command, [options] { return run_heads<LabRun>(*options); }};
}

}  // namespace attnscope
