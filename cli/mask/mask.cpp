#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/mask/choice_run.h"
#include "cli/mask/mask_options.h"
#include "cli/mask/mask_report.h"
#include "cli/mask/saved_blocks.h"
#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/mask_timing.h"
#include "io/files/file_ending.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/results/head_tables.h"

namespace attnscope {
namespace {

/// The block size, in tokens, that most block-sparse kernels use.
constexpr int64_t kDefaultMaskBlock = 128;

/// Trees say what their files' blocks are.
void check_block_use(const MaskOptions& o, const std::vector<MaskChoice>& masks) {
  const bool any_file = std::any_of(masks.begin(), masks.end(), [](const MaskChoice& mask) {
    return std::filesystem::path(mask.name()).extension() == ".npy";
  });
  if (o.block == 0 || any_file || !o.save.empty() || o.time) return;
  throw usage_error(fmt::format(
      "--block {}: is of --mask FILE.npy, --save and --time (a pattern's own: topk:block={})",
      o.block, o.block));
}

/// Throws Error(usage) where the names of the outputs cannot be meant.
void check_output_names(const MaskOptions& o) {
  check_table_name(o.out, o.shard);
  if (o.save.empty()) return;
  refuse_shard(o.shard, "--save writes the blocks of all heads of a call at once");
  if (o.resume) throw usage_error("--resume: --save writes the blocks of all heads in one run");
  require_ending(o.save, {".npy"}, "--save");
  if (o.out == o.save || o.out == block_facts_path(o.save)) {
    throw usage_error(fmt::format("--save and -o name the same file ({} is what {} holds)",
                                  block_facts_path(o.save).string(), o.save));
  }
}

/// Throws Error(usage) where --save has no place for what is measured.
void check_saved_calls(const MaskOptions& o, const std::vector<SelectedCall>& calls) {
  if (o.save.empty()) return;
  if (o.masks.size() == 1 && calls.size() == 1 && calls.front().batch.size() == 1) return;
  throw usage_error(fmt::format(
      "--save {}: a file holds the heads of one call, one batch item and one mask (got {} calls, "
      "{} batch items, {} masks): select with --steps --layers --branch --batch",
      o.save, calls.size(), calls.front().batch.size(), o.masks.size()));
}

class MaskRun final : public ChoiceRun {
 public:
  MaskRun(MaskOptions& options, Team& team, const Console& console)
      : ChoiceRun("mask", options, team, console), o_(options) {}

 private:
  void check_options() override;
  std::vector<std::string> words() const override { return o_.masks; }
  std::vector<MaskChoice> parse() override;
  void check_calls() override;
  OrderedJson own_options() const override {
    return {{"masks", o_.masks}, {"block", o_.block}, {"exact", o_.exact}, {"time", o_.time}};
  }
  int64_t record_bytes() const override { return std::ssize(o_.masks) * (6 << 10); }
  int64_t kept_bytes(const HeadTask& task) override;
  int64_t measuring_bytes(const HeadTask& task) override {
    // What all rows took stays while the sampled ones are measured.
    const bool twice = !o_.exact && task.num_rows() > MaskMeasurement::kSampledRows;
    return least_measurement_bytes(task, o_.masks.size() + (o_.save.empty() ? 0 : 1), how()) +
           picked_bytes(task, false) * (twice ? 2 : 1);
  }
  void check_output(const OutputFileOptions& file) override;
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  /// A part says which it is, also where it is only printed.
  bool has_origin() const override { return !o_.out.empty() || (o_.json && part()); }
  void begin_measuring() override;
  OrderedJson measure_head(const HeadTask& head,
                           const std::function<void(double)>& progress) override;
  void check_line(const OrderedJson& line) const override { parse_mask_row(line); }
  void end_measuring() override;
  void before_writing() override;
  void write_file(const std::filesystem::path& path) override {
    write_mask_table(result(), std::filesystem::path(o_.out).extension().string(), path);
  }
  std::string written_text() const override { return fmt::format("{} rows", all_lines().size()); }
  OrderedJson result() const override;
  void print_table() const override {
    if (o_.csv) {
      fmt::print("{}", mask_csv(result().at("heads")));
    } else {
      print_mask_table(all_rows(), o_.time);
    }
  }
  MaskMeasurement how() { return {backend(), budget(), stop(), o_.exact}; }
  int64_t saved_block() const {
    return o_.block > 0 ? o_.block : choices().front().own_block().value_or(kDefaultMaskBlock);
  }
  std::vector<MaskRow> all_rows() const;

  const MaskOptions& o_;
  std::optional<SavedBlocks> saved_;
  std::vector<SavedHead> saved_heads_;
};

void MaskRun::check_options() {
  if (o_.masks.empty()) {
    throw usage_error(
        "mask needs --mask: a pattern such as spatial:frames=1, a .npy with --block N, or a .json");
  }
  if (!team_.is_alone() && !o_.save.empty()) {
    throw usage_error("--save " + o_.save +
                      ": writes the blocks of all heads in their order, which is one process's "
                      "work (--alone: each has files of its own)");
  }
  check_output_names(o_);
}

std::vector<MaskChoice> MaskRun::parse() {
  BlockSize block;
  if (o_.block > 0) block.told = o_.block;
  std::vector<MaskChoice> masks;
  for (const std::string& text : o_.masks) {
    masks.push_back(MaskChoice::parse(text, block, budget()));
  }
  check_block_use(o_, masks);
  return masks;
}

void MaskRun::check_calls() { check_saved_calls(o_, chosen_calls()); }

int64_t MaskRun::kept_bytes(const HeadTask& task) {
  int64_t bytes = o_.save.empty() ? 0 : SavedBlocks::bytes(task, saved_block());
  for (const MaskChoice& choice : choices()) bytes += choice.bytes(*task.problem);
  return bytes;
}

void MaskRun::check_output(const OutputFileOptions& file) {
  if (!o_.out.empty()) OutputFile::check_target(o_.out, file);
  if (!o_.save.empty()) BlockMaskWriter::check_target(o_.save, o_.force, inputs());
}

/// Tells of times that nobody takes, too.
void MaskRun::check(const CheckedRun& scope, std::span<const HeadTask> own) {
  for (const MaskChoice& mask : choices()) {
    if (!team_.is_first() || !o_.time || !mask.reorders()) continue;
    console_.say("note: --time: " + one_line(mask.name()) +
                 " has no time: a kernel of it takes the tokens in another order");
  }
  ChoiceRun::check(scope, own);
}

void MaskRun::begin_measuring() {
  if (o_.save.empty()) return;
  saved_.emplace(o_.save, o_.force, heads().front(), std::ssize(heads()), saved_block());
}

OrderedJson MaskRun::measure_head(const HeadTask& head,
                                  const std::function<void(double)>& progress) {
  const MemoryReservation reserved = budget().reserve(kept_bytes(head), "the masks of a head");
  std::vector<Mask> masks = build(head, nullptr);
  // The blocks in the file are measured beside the mask that was asked for.
  if (saved_) masks.push_back(saved_->add(head, masks.front(), stop()));
  const auto qualities = measure_masks(head, masks, how(), progress);
  OrderedJson lines = OrderedJson::array();
  for (size_t m = 0; m < choices().size(); ++m) {
    MaskRow row{.name = head_name(head.problem->id(), head.batch, head.head),
                .mask = choices()[m].name(),
                .quality = qualities[m]};
    if (o_.time && !choices()[m].reorders()) {
      const int64_t block = o_.block > 0 ? o_.block : kDefaultMaskBlock;
      row.time_ratio = mask_time_ratio(head, masks[m], block, backend(), budget());
    }
    if (saved_) {
      row.saved = SavedQuality{saved_->block(), qualities.back()};
      saved_heads_.push_back({row.name, row.saved->quality.density, row.saved->quality.recall});
    }
    lines.push_back(mask_row_json(row, o_.time));
  }
  return lines;
}

/// All heads were measured.
void MaskRun::end_measuring() {
  if (!saved_) return;
  saved_->commit(capture(), chosen_calls().front(), choices().front().name(),
                 std::move(saved_heads_), stop());
}

std::vector<MaskRow> MaskRun::all_rows() const {
  std::vector<MaskRow> rows;
  for (const OrderedJson& line : all_lines()) rows.push_back(parse_mask_row(line));
  return rows;
}

void MaskRun::before_writing() {
  if (o_.save.empty()) return;
  console_.say(saved_text(o_.save, all_rows()));
  if (choices().front().has_terms()) {
    console_.say("note: the file's blocks are measured without what stands for those that " +
                 one_line(choices().front().name()) + " drops");
  }
  if (choices().front().reorders()) {
    console_.say(
        "note: the file has blocks of tokens as they stand in the sequence, not those of " +
        one_line(choices().front().name()));
  }
}

/// The scores as JSON; of an output, its origin as well, and of a part, which it is.
OrderedJson MaskRun::result() const {
  OrderedJson json = result_head("attnscope-mask/1");
  json["heads"] = all_lines();
  return json;
}

}  // namespace

Command add_mask_command(CLI::App& app) {
  auto options = std::make_shared<MaskOptions>();
  MaskOptions& o = *options;
  CommandParser command(app, "mask", "what sparse masks keep of every head");
  add_mask_options(command, o);
  command.footer(
      "Examples:\n"
      "  attnscope mask dump/ --mask spatial:frames=1 --mask temporal --layers 12\n"
      "  attnscope mask dump/ --mask tiles:size=6x8x8,window=3x3x3 --json\n"
      "  attnscope mask dump/ --mask blocks.npy --block 128 --exact\n"
      "  attnscope mask dump/ --mask topk:keep=0.2 --steps 10 --layers 3 --save kept.npy");
  return {command, [options] { return run_heads<MaskRun>(*options, options->save); }};
}

}  // namespace attnscope
