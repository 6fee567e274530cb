#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/common/capture_check.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/forecast.h"
#include "cli/common/left_out_names.h"
#include "cli/common/run_backend.h"
#include "cli/common/run_plan.h"
#include "cli/common/run_steps.h"
#include "cli/common/shard_option.h"
#include "cli/common/team_records.h"
#include "cli/common/team_run.h"
#include "cli/common/team_steps.h"
#include "cli/common/unknown_state.h"
#include "cli/common/value_failure.h"
#include "cli/mask/mask_options.h"
#include "cli/mask/mask_report.h"
#include "cli/mask/saved_blocks.h"
#include "core/base/budget_error.h"
#include "core/base/error.h"
#include "core/patterns/mask_measurement.h"
#include "core/patterns/mask_timing.h"
#include "core/problem/signed_weights.h"
#include "core/stream/row_stream.h"
#include "io/capture/capture_guard.h"
#include "io/capture/selection_share.h"
#include "io/export/format/export_part_json.h"
#include "io/files/checksum.h"
#include "io/files/file_ending.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "io/masks/mask_choice.h"
#include "io/results/mask_files.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

/// What block-sparse kernels use most.
constexpr int64_t kDefaultBlock = 128;

/// The selected heads, or a share of them.
struct MaskTasks {
  std::vector<SelectedCall> selected;  ///< of the whole plan
  std::vector<SelectedCall> calls;
  std::vector<HeadTask> tasks;
  std::optional<SelectionShare> share;

  /// The heads that are selected of a task's call, in the whole plan.
  std::span<const int64_t> selected_heads(const HeadTask& task) const {
    const auto of = std::find_if(selected.begin(), selected.end(), [&](const SelectedCall& call) {
      return call.call->problem.get() == task.problem;
    });
    return of->heads;
  }
};

/// What decides the scores beside the calls.
OrderedJson mask_options(const MaskOptions& o) {
  return {{"masks", o.masks}, {"block", o.block}, {"exact", o.exact}, {"time", o.time}};
}

std::string plan_of_masks(const MaskOptions& o, const Capture& capture) {
  return plan_text("mask", mask_options(o), capture.path().filename().string());
}

MaskTasks make_tasks(const MaskOptions& o, const Capture& capture,
                     const std::optional<PlanShare>& share) {
  MaskTasks m;
  m.selected = m.calls = capture.select(parse_selection(o.selection));
  if (share) {
    m.share = share_selection(m.selected, *share, ShareUnit::heads, plan_of_masks(o, capture));
    m.calls = m.share->of(m.selected);
  }
  for (const SelectedCall& selected : m.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    require_one_sign(problem, "a share that a mask keeps");
    if (!is_normalised(problem.score())) {
      throw usage_error(
          "mask: rows of sigmoid scores do not sum to 1, so no share of them is kept");
    }
    for (int64_t b : selected.batch) {
      for (int64_t h : selected.heads) {
        m.tasks.push_back(
            {&problem, b, h, {0, problem.num_queries()}, {}, {0, problem.num_keys()}});
      }
    }
  }
  return m;
}

std::vector<MaskChoice> parse_masks(const MaskOptions& o, MemoryBudget& budget) {
  if (o.masks.empty()) {
    throw usage_error(
        "mask needs --mask: a pattern such as spatial:frames=1, a .npy with --block N, or a .json");
  }
  BlockSize block;
  if (o.block > 0) block.told = o.block;
  std::vector<MaskChoice> masks;
  for (const std::string& text : o.masks) masks.push_back(MaskChoice::parse(text, block, budget));
  return masks;
}

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

void check_masks_fit(const std::vector<MaskChoice>& masks,
                     const std::vector<SelectedCall>& selected, const MaskResources& resources) {
  for (const SelectedCall& call : selected) {
    for (const MaskChoice& mask : masks) mask.check(*call.call->problem, call.heads, resources);
  }
}

std::vector<std::filesystem::path> inputs_of(const MaskOptions& o, const Capture& capture) {
  std::vector<std::filesystem::path> inputs = guarded_inputs(capture);
  for (const std::string& mask : o.masks) {
    inputs.emplace_back(mask);
    inputs.push_back(block_facts_path(mask));
  }
  return inputs;
}

void check_outputs(const MaskOptions& o, const Capture& capture, const MaskTasks& m) {
  std::vector<std::filesystem::path> inputs = inputs_of(o, capture);
  const OutputFileOptions options{
      .force = o.force, .resumable = true, .resume = o.resume, .inputs = inputs};
  if (!o.out.empty()) {
    require_ending(o.out, {".csv", ".json"});
    if (std::filesystem::path(o.out).extension() == ".csv") {
      refuse_shard(o.shard,
                   "a .csv does not say which part it is: write a .json, of which attnscope "
                   "merge makes a .csv");
    }
    OutputFile::check_target(o.out, options);
  }
  if (o.save.empty()) return;
  refuse_shard(o.shard, "--save writes the blocks of all heads of a call at once");
  if (o.resume) throw usage_error("--resume: --save writes the blocks of all heads in one run");
  require_ending(o.save, {".npy"}, "--save");
  if (o.masks.size() != 1 || m.calls.size() != 1 || m.calls.front().batch.size() != 1) {
    throw usage_error(fmt::format(
        "--save {}: a file holds the heads of one call, one batch item and one mask (got {} calls, "
        "{} batch items, {} masks): select with --steps --layers --branch --batch",
        o.save, m.calls.size(), m.calls.front().batch.size(), o.masks.size()));
  }
  if (o.out == o.save || o.out == block_facts_path(o.save)) {
    throw usage_error(fmt::format("--save and -o name the same file ({} is what {} holds)",
                                  block_facts_path(o.save).string(), o.save));
  }
  BlockMaskWriter::check_target(o.save, o.force, inputs);
}

void add_digest(const std::filesystem::path& file, OrderedJson& digests) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return;
  int64_t bytes = 0;
  digests[file.filename().string()] =
      fmt::format("{:016x}", file_checksum(file, std::stop_token(), &bytes));
}

/// Digests of the files that masks are read from: blocks with what is said of them, and a tree's
/// with those of the files that it names.
void add_file_digests(const std::filesystem::path& file, OrderedJson& digests) {
  add_digest(file, digests);
  // Which of its planes is whose.
  if (file.extension() == ".npy") add_digest(block_facts_path(file), digests);
  if (file.extension() != ".json") return;
  const OrderedJson tree = OrderedJson::parse(read_file_text(file), nullptr, false).flatten();
  for (const auto& [place, word] : tree.items()) {
    if (!word.is_string()) continue;
    const std::filesystem::path named = file.parent_path() / word.get<std::string>();
    if (named.extension() == ".npy") add_file_digests(named, digests);
  }
}

/// Measures every mask on heads, one at a time.
class MaskLab {
 public:
  MaskLab(const MaskOptions& options, const MaskTasks& tasks, const std::vector<MaskChoice>& masks,
          const TileBackend& backend, MemoryBudget& budget, std::stop_token stop)
      : o_(options),
        m_(tasks),
        choices_(masks),
        backend_(backend),
        budget_(budget),
        stop_(std::move(stop)) {
    if (o_.save.empty()) return;
    const int64_t block =
        o_.block > 0 ? o_.block : choices_.front().own_block().value_or(kDefaultBlock);
    saved_.emplace(o_.save, o_.force, m_.tasks.front(), std::ssize(m_.tasks), block);
  }

  /// Throws BudgetError where a head does not fit what is left.
  void require_memory() const {
    int64_t most = 0;
    const AttentionProblem* looked_at = nullptr;
    for (const HeadTask& task : m_.tasks) {
      if (task.problem == looked_at) continue;
      looked_at = task.problem;
      const MaskMeasurement how{backend_, budget_, stop_, o_.exact};
      int64_t bytes = least_measurement_bytes(task, choices_.size() + (saved_ ? 1 : 0), how);
      for (const MaskChoice& choice : choices_) {
        bytes = std::max(bytes, choice.least_build_bytes(*task.problem, backend_));
      }
      most = std::max(most, kept_bytes(task) + bytes);
    }
    const MemoryRoom room = budget_.room();
    if (most > room.bytes) throw BudgetError(room, most);
  }

  /// A line a mask.
  std::vector<MaskRow> measure(size_t i, const std::function<void(double)>& progress) {
    const HeadTask& task = m_.tasks[i];
    const MemoryReservation reserved = budget_.reserve(kept_bytes(task), "the masks of a head");
    const SelectedHead head{task.batch, task.head, m_.selected_heads(task)};
    std::vector<Mask> masks;
    for (const MaskChoice& choice : choices_) {
      masks.push_back(choice.build(*task.problem, head, {backend_, budget_, stop_}));
    }
    // What is in the file is measured beside what was asked for.
    if (saved_) masks.push_back(saved_->add(task, masks.front(), stop_));
    const auto qualities =
        measure_masks(task, masks, {backend_, budget_, stop_, o_.exact}, progress);
    std::vector<MaskRow> rows;
    for (size_t m = 0; m < choices_.size(); ++m) {
      MaskRow row{.name = head_name(task.problem->id(), task.batch, task.head),
                  .mask = choices_[m].name(),
                  .quality = qualities[m]};
      if (o_.time) {
        const int64_t block = o_.block > 0 ? o_.block : kDefaultBlock;
        row.time_ratio = mask_time_ratio(task, masks[m], block, backend_, budget_);
      }
      if (saved_) {
        row.saved = SavedQuality{saved_->block(), qualities.back()};
        saved_heads_.push_back({row.name, row.saved->quality.density, row.saved->quality.recall});
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// All heads were measured.
  void end(const Capture& capture) {
    if (!saved_) return;
    saved_->commit(capture, m_.calls.front(), choices_.front().name(), std::move(saved_heads_),
                   stop_);
  }

 private:
  /// Of a head's masks, while they live.
  int64_t kept_bytes(const HeadTask& task) const {
    int64_t bytes = saved_ ? saved_->bytes(task) : 0;
    for (const MaskChoice& choice : choices_) bytes += choice.bytes(*task.problem);
    return bytes;
  }

  const MaskOptions& o_;
  const MaskTasks& m_;
  const std::vector<MaskChoice>& choices_;
  const TileBackend& backend_;
  MemoryBudget& budget_;
  const std::stop_token stop_;
  std::optional<SavedBlocks> saved_;
  std::vector<SavedHead> saved_heads_;
};

RunPlan plan_of_run(const MaskOptions& o, const MaskTasks& m, const TileBackend& backend,
                    MemoryBudget& budget) {
  RunPlan plan{.command = "mask"};
  if (!m.tasks.empty()) {
    const RowStream stream = plan_row_stream(m.tasks, backend, budget);
    plan = forecast_run("mask", m.tasks, stream.request, stream.plan, backend, budget, true);
  }
  plan.masks = static_cast<int64_t>(o.masks.size());
  plan.seconds_note = " for the weights; masks come on top";
  return plan;
}

/// What an output says that it was made of.
OrderedJson about_run(const Capture& capture, const OrderedJson& identity) {
  OrderedJson about{{"capture", capture.path().filename().string()}};
  about.update(identity);
  return about;
}

/// The run, as one of the processes that do it together, or alone.
class MaskRun final : public TeamWork {
 public:
  MaskRun(const MaskOptions& options, Team& team, const Console& console)
      : o_(options), team_(team), console_(console) {}

  int run() override;
  bool begun() const override { return found_.is_open(); }
  std::string left(int64_t kept) const override {
    return leftover_text({kept, std::ssize(rows_), "heads", o_.out + ".part"});
  }
  void give_up() override {
    found_.close();
    remove_partial(o_.out);
  }

 private:
  void check_options() const;
  OrderedJson options_of(const MaskTasks& m, const TileBackend& backend) const;
  void agree(const Capture& capture, const MaskTasks& m, const OrderedJson& options);
  std::optional<int64_t> take(const OrderedJson& json);
  OrderedJson identity_of(const MaskTasks& m, const Capture& capture, const OrderedJson& options,
                          const std::stop_token& stop);
  bool is_there(const OrderedJson& identity, int64_t total);
  bool is_done(const MaskTasks& m, const Capture& capture, const OrderedJson& options,
               const std::stop_token& stop, OrderedJson& about);
  void tell_of_other_heads(const std::vector<MaskChoice>& masks, const MaskTasks& m,
                           const Capture& capture, const std::stop_token& stop) const;
  void measure(MaskLab& lab, int64_t entries);
  OrderedJson result(const MaskTasks& m, const OrderedJson& about) const;
  void write(const MaskTasks& m, const OrderedJson& about);
  std::vector<MaskRow> all_rows() const;

  MaskOptions o_;
  Team& team_;
  const Console& console_;
  std::map<HeadName, int64_t> heads_;       ///< by place
  std::vector<std::vector<MaskRow>> rows_;  ///< of each
  std::vector<std::string> call_hashes_;
  TeamRecords found_{team_, [this](const OrderedJson& json) { return take(json); }};
};

void MaskRun::check_options() const {
  if (!team_.is_alone() && !o_.save.empty()) {
    throw usage_error("--save " + o_.save +
                      ": writes the blocks of all heads in their order, which is one process's "
                      "work (--alone: each has files of its own)");
  }
}

/// What decides the result beside the capture's content.
OrderedJson MaskRun::options_of(const MaskTasks& m, const TileBackend& backend) const {
  OrderedJson options = mask_options(o_);
  options.update(selection_json(o_.selection));
  options["score"] = score_text(m.selected);
  add_left_out(options, o_.capture);
  options["backend"] = recorded_backend(backend, m.selected);
  OrderedJson& files = options["files"] = OrderedJson::object();
  for (const std::string& mask : o_.masks) add_file_digests(mask, files);
  return options;
}

void MaskRun::agree(const Capture& capture, const MaskTasks& m, const OrderedJson& options) {
  agree_on_run(team_, capture, m.selected,
               {{"options", options},
                {"heads", m.tasks.size()},
                {"-o", o_.out},
                {"--json", o_.json},
                {"--resume", o_.resume},
                {"--force", o_.force},
                {"--dry-run", o_.dry_run}});
}

/// The lines of a head that another run or process found.
std::optional<int64_t> MaskRun::take(const OrderedJson& json) {
  try {
    std::vector<MaskRow> rows;
    for (const OrderedJson& line : json.at("lines")) rows.push_back(parse_mask_row(line));
    const auto head = rows.empty() ? heads_.end() : heads_.find(rows.front().name);
    if (head == heads_.end() || rows.size() != o_.masks.size()) return std::nullopt;
    rows_[static_cast<size_t>(head->second)] = std::move(rows);
    return head->second;
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  }
}

/// What the output says that it was made of. Reads all that it is made of.
OrderedJson MaskRun::identity_of(const MaskTasks& m, const Capture& capture,
                                 const OrderedJson& options, const std::stop_token& stop) {
  std::string hash;
  if (m.share) {
    const std::vector<std::string> own =
        capture.call_hashes(m.share->touched(m.selected), true, stop);
    const std::vector<int64_t> places = m.share->places();
    call_hashes_.assign(m.selected.size(), "");
    for (size_t i = 0; i < own.size(); ++i) call_hashes_[static_cast<size_t>(places[i])] = own[i];
    hash = join_call_hashes(own);
  } else {
    hash = join_call_hashes(hash_together(team_, capture, m.selected, true, stop));
  }
  OrderedJson identity{{"capture_hash", hash}, {"options", options}};
  if (m.share) identity.update(part_identity(m.share->part));
  return identity;
}

/// Whether the output is complete already, as the first process finds it.
bool MaskRun::is_there(const OrderedJson& identity, int64_t total) {
  const bool complete = team_.is_first() && o_.resume && !o_.force &&
                        is_recorded_already(console_, o_.out, "mask", identity, total);
  return !team_.exchange(complete ? "complete" : "").front().empty();
}

/// Whether the output is complete already; else it is begun, or gone on with. `about` gets what it
/// says that it was made of.
bool MaskRun::is_done(const MaskTasks& m, const Capture& capture, const OrderedJson& options,
                      const std::stop_token& stop, OrderedJson& about) {
  const OrderedJson identity = identity_of(m, capture, options, stop);
  if (is_there(identity, std::ssize(m.tasks))) return true;
  about = about_run(capture, identity);
  const std::vector<std::filesystem::path> inputs = inputs_of(o_, capture);
  found_.open(o_.out, record_list_header("mask", identity), capture.path().filename().string(),
              {.force = o_.force,
               .resumable = true,
               .resume = o_.resume,
               .inputs = inputs,
               .sources = capture.inputs()},
              console_);
  if (!found_.there().empty()) {
    console_.say(resuming_text(
        {std::ssize(found_.there()), std::ssize(m.tasks), "heads", o_.out + ".part"}));
  }
  return false;
}

void MaskRun::tell_of_other_heads(const std::vector<MaskChoice>& masks, const MaskTasks& m,
                                  const Capture& capture, const std::stop_token& stop) const {
  for (const std::string& note : other_head_notes(masks, m.selected, capture, stop)) {
    console_.say("note: " + note);
  }
}

/// The heads that are left, or this process's of them.
void MaskRun::measure(MaskLab& lab, int64_t entries) {
  constexpr int64_t kSteps = 1000;
  std::vector<int64_t> left;
  for (const auto& [name, place] : heads_) {
    if (rows_[static_cast<size_t>(place)].empty()) left.push_back(place);
  }
  // Others than the first process have not the lines of those that are there.
  std::erase_if(left, [&](int64_t place) {
    return std::binary_search(found_.there().begin(), found_.there().end(), place);
  });
  std::sort(left.begin(), left.end());
  const int64_t all = std::ssize(left);
  if (all == 0) return;
  Progress progress(console_, "mask", all * kSteps,
                    static_cast<double>(entries) / static_cast<double>(all * kSteps), "entries");
  team_.begin_units(all);
  while (const std::optional<int64_t> unit = team_.next_unit()) {
    const auto place = static_cast<size_t>(left[static_cast<size_t>(*unit)]);
    rows_[place] = lab.measure(place, [&](double share) {
      progress.update(*unit * kSteps + static_cast<int64_t>(share * kSteps));
    });
    OrderedJson lines = OrderedJson::array();
    for (const MaskRow& row : rows_[place]) lines.push_back(mask_row_json(row, o_.time));
    found_.add({{"lines", std::move(lines)}});
  }
  found_.flush();
}

std::vector<MaskRow> MaskRun::all_rows() const {
  std::vector<MaskRow> rows;
  for (const auto& of_head : rows_) rows.insert(rows.end(), of_head.begin(), of_head.end());
  return rows;
}

/// The scores as JSON; of an output, what it was made of as well, and of a part, which it is.
OrderedJson MaskRun::result(const MaskTasks& m, const OrderedJson& about) const {
  const OrderedJson scores = mask_json(all_rows(), o_.time);
  OrderedJson json{{"format", scores["format"]}};
  json.update(about);
  if (m.share) {
    json.update(part_json(m.share->part, m.share->places(), call_hashes_));
    if (!m.calls.empty()) json["backend"] = about["options"]["backend"];
  }
  add_left_out(json, o_.capture);
  json["heads"] = scores["heads"];
  return json;
}

void MaskRun::write(const MaskTasks& m, const OrderedJson& about) {
  if (!o_.save.empty()) console_.say(saved_text(o_.save, all_rows()));
  const bool in_file = found_.is_open();
  if (in_file) {
    const bool written = found_.finish([&](const std::filesystem::path& path) {
      const std::string text = mask_file_text(result(m, about), o_.out);
      PosixFile file(path, PosixFile::Mode::create);
      file.write_at(std::as_bytes(std::span(text)), 0);
      file.close();
    });
    if (written) console_.say(fmt::format("wrote {} ({} rows)", o_.out, all_rows().size()));
    if (!written) say_complete(console_, o_.out);
  }
  print_result(
      o_.json, in_file, [&] { return result(m, about); },
      [&] { print_mask_table(all_rows(), o_.time); });
}

int MaskRun::run() {
  const std::optional<PlanShare> share = chosen_share(o_.shard, console_);
  o_.out = name_of_share(o_.out, share);
  check_options();
  const RunOptions how = share_of_host(o_.run, team_);
  MemoryBudget budget(memory_limit(how));
  const std::vector<MaskChoice> masks = parse_masks(o_, budget);
  check_block_use(o_, masks);
  const Capture capture = open_capture(o_.capture, how, console_);
  const MemoryReservation calls = budget.reserve(counted_bytes(capture), "the capture's calls");
  const MaskTasks m = make_tasks(o_, capture, share);
  const auto backend = make_team_backend(how, team_, console_);
  if (team_.is_first()) {
    check_capture(capture, o_.capture, *backend, budget.room(), console_);
    tell_unknown_state(m.selected, console_);
  }
  check_masks_fit(masks, m.selected, {*backend, budget});
  const OrderedJson options = options_of(m, *backend);
  agree(capture, m, options);
  for (const HeadTask& task : m.tasks) {
    heads_.emplace(head_name(task.problem->id(), task.batch, task.head), std::ssize(heads_));
  }
  rows_.resize(m.tasks.size());
  constexpr int64_t kResultBytes = 6 << 10;
  const int64_t held = results_held(team_, std::ssize(m.tasks)) * std::ssize(masks);
  const MemoryReservation results = reserve_results(budget, held, kResultBytes);
  if (team_.is_first()) check_outputs(o_, capture, m);
  if (o_.dry_run) {
    if (team_.is_first()) {
      RunPlan plan = plan_of_run(o_, m, *backend, budget);
      if (!team_.is_alone()) share_forecast(plan, team_, std::ssize(m.tasks));
      print_plan(plan, o_.json);
    }
    team_.exchange("");
    return kExitOk;
  }
  const CheckedRun run(console_, own_items(team_, m.tasks), *backend);
  if (team_.is_first()) tell_of_other_heads(masks, m, capture, run.stop());
  OrderedJson about = OrderedJson::object();
  // A part says which it is, also where it is only printed.
  if (o_.out.empty() && o_.json && m.share) {
    about = about_run(capture, identity_of(m, capture, options, run.stop()));
  }
  if (!o_.out.empty() && is_done(m, capture, options, run.stop(), about)) {
    if (o_.json && team_.is_first()) print_json(read_table_json(o_.out, "mask"), true);
    team_.exchange("");
    return kExitOk;
  }
  // Of a part without heads there is nothing to measure.
  if (!m.tasks.empty()) {
    MaskLab lab(o_, m, masks, *backend, budget, run.stop());
    lab.require_memory();
    const RowStream stream = plan_row_stream(m.tasks, *backend, budget);
    measure(lab, stream.plan.entries);
    capture.require_unchanged();
    lab.end(capture);
  }
  found_.collect();
  if (team_.is_first()) write(m, about);
  team_.exchange("");
  // While signals are still heeded.
  found_.close();
  return kExitOk;
}

int run_mask(const MaskOptions& o) {
  const Console console(o.quiet);
  return run_shared(
      o.shard, o.alone, o.out + o.save, console,
      [&](Team& team, const Console& words) { return std::make_unique<MaskRun>(o, team, words); });
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
  return {command, [options] { return run_mask(*options); }};
}

}  // namespace attnscope
