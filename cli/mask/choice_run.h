#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/recorded_run.h"
#include "io/masks/mask_choice.h"

namespace attnscope {

/// A run that measures masks, or edits, of one head after the other: `mask` and `lab`. The record
/// of a head is {"lines": [one a mask]}.
class ChoiceRun : public RecordedRun {
 public:
  ChoiceRun(std::string_view product, HeadRunOptions& options, Team& team, const Console& console)
      : RecordedRun(product, options, team, console), product_(product) {}

 protected:
  /// The masks as they were asked for, which may name files.
  virtual std::vector<std::string> words() const = 0;
  virtual std::vector<MaskChoice> parse() = 0;
  /// Throws Error(usage) where the selected calls cannot be meant.
  virtual void check_calls() {}
  /// Options that decide the numbers, beside the selected calls.
  virtual OrderedJson own_options() const = 0;
  /// Lines of a head.
  virtual size_t lines_of_head() const { return choices_.size(); }
  /// Bytes that a head's masks keep while they are measured, and the most that its measurement
  /// takes beside them.
  virtual int64_t kept_bytes(const HeadTask& task) = 0;
  virtual int64_t measuring_bytes(const HeadTask& task) = 0;
  /// Of the measurement, what masks of picked blocks take in one pass over rows.
  int64_t picked_bytes(const HeadTask& task, bool best_blocks);
  /// Before the first head.
  virtual void begin_measuring() {}
  /// The lines of a head, one a choice, each of which begins with the head's name; `progress` is
  /// told which share is done.
  virtual OrderedJson measure_head(const HeadTask& head,
                                   const std::function<void(double)>& progress) = 0;
  /// Throws nlohmann's exceptions where JSON of another run or process is no line.
  virtual void check_line(const OrderedJson& line) const = 0;

  const std::vector<MaskChoice>& choices() const { return choices_; }
  /// The heads of this run, or of its part.
  const std::vector<HeadTask>& heads() const { return heads_; }
  const std::vector<SelectedCall>& chosen_calls() const { return chosen_; }
  /// The head of a task, among those that are selected of its call in the whole plan.
  SelectedHead selected_head(const HeadTask& task) const;
  /// The mask of each choice, made for a head. Scores are taken from `keeper`.
  std::vector<Mask> build(const HeadTask& task, ScoreKeeper* keeper);
  const std::stop_token& stop() const { return stop_; }
  /// The lines of all heads, in their order.
  OrderedJson all_lines() const;
  /// The result's first members: format, origin, part, backend and what was left out.
  OrderedJson result_head(const std::string& format) const;

  std::vector<SelectedCall> choose() final;
  void check_plan() final;
  OrderedJson result_options() const final;
  OrderedJson plan_options() const final { return own_options(); }
  void keep_share(const SelectionShare& share) final;
  std::vector<HeadTask> tasks() const final { return heads_; }
  RunPlan forecast() final;
  void check_memory() final;
  void check(const CheckedRun& scope, std::span<const HeadTask> own) override;
  bool reads_values() const final { return true; }
  std::vector<std::filesystem::path> inputs() const final;
  std::optional<int64_t> take(const OrderedJson& json) final;
  void measure(const std::stop_token& stop) final;

 private:
  void make_heads(const std::vector<SelectedCall>& calls);

  const std::string product_;
  std::vector<MaskChoice> choices_;
  std::vector<SelectedCall> selected_;  ///< of the whole plan
  std::vector<SelectedCall> chosen_;
  std::vector<HeadTask> heads_;
  std::vector<OrderedJson> lines_;  ///< of each head
  std::stop_token stop_;
};

/// Throws Error(usage) where a table cannot be written to `out`; empty: none is.
void check_table_name(const std::string& out, const std::string& shard);

}  // namespace attnscope
