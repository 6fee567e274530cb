#include "cli/run/recorded_run.h"

#include <fmt/core.h>

#include <utility>

#include "cli/common/command.h"
#include "cli/run/shard_option.h"
#include "cli/run/value_failure.h"
#include "core/base/error.h"
#include "io/files/output_file.h"
#include "io/results/output_provenance.h"

namespace attnscope {

std::string RecordedRun::left(int64_t kept) const {
  return leftover_text({kept, std::ssize(places_), "heads", common_.out + ".part"});
}

void RecordedRun::give_up() {
  found_.close();
  remove_partial(common_.out);
}

std::optional<int64_t> RecordedRun::place_of(const HeadName& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

RunPlan RecordedRun::planned() { return shared_plan(forecast(), std::ssize(places_)); }

/// Which heads the run has, of which all processes agree.
std::vector<HeadTask> RecordedRun::agreed_tasks() {
  check_plan();
  options_ = result_options();
  if (share()) {
    part_ =
        share_selection(calls(), *share(), ShareUnit::heads,
                        plan_text(product_, plan_options(), capture().path().filename().string()));
    keep_share(*part_);
  }
  std::vector<HeadTask> all = tasks();
  agree({{"options", options_}, {"heads", all.size()}});
  for (const HeadTask& task : all) {
    places_.emplace(head_name(task.problem->id(), task.batch, task.head), std::ssize(places_));
  }
  return all;
}

/// True on all processes where the first one finds the output complete.
bool RecordedRun::is_there(const OrderedJson& identity) {
  const bool complete =
      team_.is_first() && common_.resume && !common_.force &&
      is_recorded_already(console_, common_.out, product_, identity, std::ssize(places_));
  return !team_.exchange(complete ? "complete" : "").front().empty();
}

/// True where the output is complete already; otherwise begins it, or resumes it.
bool RecordedRun::is_done(const OrderedJson& identity, const OutputFileOptions& file) {
  if (common_.out.empty()) return false;
  if (is_there(identity)) {
    const bool is_json = std::filesystem::path(common_.out).extension() == ".json";
    if (!common_.json || is_json) {
      if (common_.json && team_.is_first()) {
        print_json(read_table_json(common_.out, product_), true);
      }
      return true;
    }
    // Another format has its heads' numbers, and not all that the JSON says.
    console_.say("its heads are measured again for --json");
    return false;
  }
  found_.open(common_.out, record_list_header(product_, identity),
              capture().path().filename().string(), file, console_);
  if (!found_.there().empty()) {
    console_.say(resuming_text(
        {std::ssize(found_.there()), std::ssize(places_), "heads", common_.out + ".part"}));
  }
  return false;
}

/// Says what the run is made of, where the result does.
OrderedJson RecordedRun::find_origin(const std::stop_token& stop) {
  if (!has_origin()) return {};
  digests_ = digest_calls(team_, capture(), calls(), part_, reads_values(), stop);
  OrderedJson identity = run_identity(digests_.whole, options_, part_ ? &part_->part : nullptr);
  origin_ = {{"capture", capture().path().filename().string()}};
  origin_.update(identity);
  return identity;
}

/// Throws where what --resume finds is of another run.
void RecordedRun::check_resume() {
  const InterruptWatch interrupts(console_);
  const OrderedJson identity = find_origin(interrupts.token());
  if (!team_.is_first()) return;
  if (!common_.force &&
      is_recorded_already(console_, common_.out, product_, identity, std::ssize(places_), false)) {
    return;
  }
  check_records_left(common_.out, record_list_header(product_, identity),
                     capture().path().filename().string());
}

void RecordedRun::write() {
  before_writing();
  const bool in_file = found_.is_open();
  if (in_file) {
    const bool written =
        found_.finish([&](const std::filesystem::path& path) { write_file(path); });
    if (written) console_.say(fmt::format("wrote {} ({})", common_.out, written_text()));
    if (!written) say_complete(console_, common_.out);
  }
  print_result(
      common_.json, in_file, [&] { return result(); }, [&] { print_table(); });
}

int RecordedRun::work() {
  const std::vector<HeadTask> all = agreed_tasks();
  const MemoryReservation results =
      reserve_results(budget(), results_held(team_, std::ssize(all)), record_bytes());
  const std::vector<std::filesystem::path> known = inputs();
  const OutputFileOptions file{.force = common_.force,
                               .resumable = true,
                               .resume = common_.resume,
                               .inputs = known,
                               .sources = capture().inputs()};
  check_memory();
  if (is_only_planned(
          {[&] { check_output(file); }, [&] { check_resume(); }, [&] { return planned(); }})) {
    return kExitOk;
  }
  if (team_.is_first()) start();
  const std::span<const HeadTask> own = own_items(team_, all);
  const CheckedRun& scope = check_inputs(own);
  check(scope, own);
  if (is_done(find_origin(scope.stop()), file)) return kExitOk;
  if (!all.empty()) measure(scope.stop());
  capture().require_unchanged();
  if (!all.empty()) end_measuring();
  found_.collect();
  if (team_.is_first()) write();
  return kExitOk;
}

}  // namespace attnscope
