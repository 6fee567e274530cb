#include "viewer/tiles/mask_keeper.h"

#include <algorithm>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/failure_text.h"
#include "core/mask/edited_mask.h"
#include "core/mask/mask_cover.h"
#include "core/mask/reordered_mask.h"
#include "core/patterns/mask_measurement.h"
#include "core/problem/signed_weights.h"
#include "core/products/map_reductions.h"
#include "io/masks/mask_choice.h"
#include "viewer/tiles/thread_priority.h"

namespace attnscope {
namespace {

/// Masks that stay, so that going back finds them.
constexpr size_t kMostMasks = 8;

HeadTask task_of(const MaskKeeper::Wish& wish) {
  const AttentionProblem& problem = *wish.problem;
  const HeadId& head = wish.request.head;
  return {&problem, head.batch, head.head, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
}

void require_shares(const AttentionProblem& problem) {
  require_one_sign(problem, "a share that a mask keeps");
  if (is_normalised(problem.score())) return;
  throw usage_error("mask: rows of sigmoid scores do not sum to 1, so no share of them is kept");
}

/// The blocks that the mask keeps anything of.
void cover(HeadMask& to, const HeadTask& task, const Mask& mask, const std::stop_token& stop) {
  const int64_t rows = task.problem->num_queries();
  to.kept.reserve(static_cast<size_t>(to.query_blocks * to.key_blocks));
  for (int64_t first = 0; first < rows; first += to.block) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "another mask is wanted");
    const auto line =
        kept_blocks(mask, task.batch, task.head, {first, std::min(first + to.block, rows)},
                    task.problem->num_keys(), to.block);
    to.kept.insert(to.kept.end(), line.begin(), line.end());
  }
}

bool wants_mass(const MaskRequest& request) { return request.lost && request.head.order == 0; }

/// Reductions over one head, on the keeper's thread and the backend's workers.
class KeeperReductions : public ReductionRunner {
 public:
  KeeperReductions(const TileBackend& backend, MemoryBudget& budget, std::stop_token stop)
      : backend_(backend), budget_(budget), stop_(std::move(stop)) {}
  MemoryBudget& budget() override { return budget_; }
  bool is_plan_only() const override { return false; }
  void reduce(std::span<const ReductionJob> jobs, ReductionSink& sink) override {
    const ReductionPlan plan = plan_reductions(jobs, backend_, budget_.room());
    StreamControl control;
    control.stop = stop_;
    if (ReductionStream(backend_, budget_).run(jobs, plan, sink, control)) return;
    throw Error(ErrorCode::interrupted, "another mask is wanted");
  }

 private:
  const TileBackend& backend_;
  MemoryBudget& budget_;
  const std::stop_token stop_;
};

/// [query blocks, key blocks]: the mean over a block's rows of the weight on its keys.
std::vector<float> block_mass(const HeadTask& task, int64_t block, const TileBackend& backend,
                              MemoryBudget& budget, const std::stop_token& stop) {
  KeeperReductions run(backend, budget, stop);
  PooledMap pooled = std::move(pooled_maps({&task, 1}, block, run).front());
  const int64_t keys = task.keys.size();
  for (int64_t c = 0; c < pooled.cols; ++c) {
    const auto width = static_cast<float>(std::min(block, keys - c * block));
    for (int64_t r = 0; r < pooled.rows; ++r) {
      pooled.mean[static_cast<size_t>(r * pooled.cols + c)] *= width;
    }
  }
  return std::move(pooled.mean);
}

}  // namespace

MaskKeeper::MaskKeeper(const TileBackend& backend, int64_t memory, Reserve reserve, Taken taken,
                       std::function<void()> wake)
    : backend_(backend),
      memory_(memory),
      reserve_(std::move(reserve)),
      taken_(std::move(taken)),
      wake_(std::move(wake)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

MaskKeeper::~MaskKeeper() {
  thread_.request_stop();
  want(std::nullopt);
  thread_.join();
}

void MaskKeeper::want(std::optional<Wish> wish) {
  const std::lock_guard lock(mutex_);
  const bool same =
      wish.has_value() == wish_.has_value() && (!wish || wish->request == wish_->request);
  if (same) return;
  // A mask that failed may be tried again: a file may have been put right.
  std::erase_if(kept_, [](const Kept& each) { return !each.mask->problem.empty(); });
  wish_ = std::move(wish);
  current_.request_stop();
  current_ = {};
  changed_.notify_one();
}

const MaskKeeper::Kept* MaskKeeper::find_kept(const MaskRequest& request) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& each) { return each.mask->request == request; });
  return found == kept_.end() ? nullptr : &*found;
}

std::shared_ptr<const HeadMask> MaskKeeper::find(const MaskRequest& request) const {
  const std::lock_guard lock(mutex_);
  const Kept* const kept = find_kept(request);
  return kept == nullptr ? nullptr : kept->mask;
}

bool MaskKeeper::pending() const {
  if (!wish_) return false;
  const Kept* const kept = find_kept(wish_->request);
  return kept == nullptr || !over(*kept->mask) || (kept->taken && taken_() < *kept->taken);
}

bool MaskKeeper::busy() const {
  const std::lock_guard lock(mutex_);
  return pending();
}

int64_t MaskKeeper::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Kept& each : kept_) bytes += each.memory.bytes();
  return bytes;
}

/// `memory` is taken over with the first of a mask's states.
void MaskKeeper::publish(const HeadMask& mask, MemoryReservation* memory,
                         std::optional<int64_t> taken) {
  {
    const std::lock_guard lock(mutex_);
    Kept kept{std::make_shared<HeadMask>(mask), {}, taken};
    const auto before = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) {
      return each.mask->request == mask.request;
    });
    if (memory != nullptr) {
      kept.memory = std::move(*memory);
    } else if (before != kept_.end()) {
      kept.memory = std::move(before->memory);
    }
    if (before != kept_.end()) kept_.erase(before);
    kept_.push_back(std::move(kept));
    if (kept_.size() > kMostMasks) kept_.erase(kept_.begin());
  }
  wake_();
}

bool MaskKeeper::over(const HeadMask& mask) {
  if (!mask.problem.empty()) return true;
  return mask.all_rows && (!wants_mass(mask.request) || !mask.mass.empty());
}

std::optional<HeadMask> MaskKeeper::measured_before(const MaskRequest& request) const {
  const std::lock_guard lock(mutex_);
  MaskRequest same = request;
  for (const bool lost : {false, true}) {
    same.lost = lost;
    const Kept* const kept = find_kept(same);
    if (kept != nullptr && kept->mask->all_rows) return *kept->mask;
  }
  return std::nullopt;
}

std::vector<float> MaskKeeper::mass_before(const MaskRequest& request) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& each : kept_) {
    if (each.mask->request.head == request.head && !each.mask->mass.empty()) {
      return each.mask->mass;
    }
  }
  return {};
}

/// The blocks, and the numbers of sampled and of all rows.
void MaskKeeper::measure_numbers(const Wish& wish, HeadMask& mask, MemoryReservation& memory,
                                 MemoryBudget& budget, const std::stop_token& stop) {
  const AttentionProblem& problem = *wish.problem;
  const HeadTask task = task_of(wish);
  const MaskRequest& request = wish.request;
  const int64_t usual = MaskRequest().block;
  BlockSize block{.otherwise = usual};
  if (request.block != usual) block.told = request.block;
  const MaskChoice choice = MaskChoice::parse(request.text, block, budget, "mask");
  const std::span<const int64_t> head(&task.head, 1);
  choice.check(problem, head, {backend_, budget, stop});
  mask.other = choice.other_head(problem, {task.batch, task.head, head});
  const MemoryReservation held = budget.reserve(choice.bytes(problem), "the mask of a head");
  const Mask built =
      edited_mask(choice.build(problem, {task.batch, task.head, head}, {backend_, budget, stop}),
                  request.edits);
  built.check_shape(problem.batch(), problem.num_heads(), problem.num_queries(),
                    problem.num_keys());
  cover(mask, task, wish.places.is_identity() ? built : reordered_mask(built, wish.places), stop);
  publish(mask, &memory);
  const MaskMeasurement how{backend_, budget, stop};
  if (problem.num_queries() > MaskMeasurement::kSampledRows) {
    mask.quality = sample_masks(task, {&built, 1}, how).front();
    publish(mask, nullptr);
  }
  mask.quality = measure_masks(task, {&built, 1}, how).front();
  mask.all_rows = true;
}

void MaskKeeper::measure(const Wish& wish, HeadMask& mask, MemoryReservation& memory,
                         const std::stop_token& stop) {
  MemoryBudget budget(memory_);
  const AttentionProblem& problem = *wish.problem;
  require_shares(problem);
  mask.block = mask_block(problem.num_queries(), problem.num_keys());
  mask.query_blocks = ceil_div(problem.num_queries(), mask.block);
  mask.key_blocks = ceil_div(problem.num_keys(), mask.block);
  const int64_t blocks = mask.query_blocks * mask.key_blocks;
  const bool mass = wants_mass(wish.request);
  memory = reserve_(mass ? 5 * blocks : blocks, "the blocks of a mask");
  if (auto before = measured_before(wish.request)) {
    before->request = wish.request;
    mask = std::move(*before);
    publish(mask, &memory);
  } else {
    measure_numbers(wish, mask, memory, budget, stop);
    publish(mask, nullptr);
  }
  if (!mass || !mask.mass.empty()) return;
  mask.mass = mass_before(wish.request);
  if (mask.mass.empty()) mask.mass = block_mass(task_of(wish), mask.block, backend_, budget, stop);
  publish(mask, nullptr);
}

void MaskKeeper::work(const Wish& wish, const std::stop_token& stop) {
  HeadMask mask;
  mask.request = wish.request;
  MemoryReservation memory;
  std::string problem;
  bool found_room = false;
  const int64_t before = taken_();
  try {
    const MemoryReservation room = reserve_(memory_, "measuring a mask");
    found_room = true;
    return measure(wish, mask, memory, stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted && stop.stop_requested()) return;
    problem = one_line(error.what());
  } catch (const std::exception& error) {
    problem = one_line(failure_text(error));
  }
  HeadMask failed;
  failed.request = wish.request;
  failed.problem = problem.empty() ? "the mask cannot be measured" : problem;
  publish(failed, nullptr, found_room ? std::nullopt : std::optional(std::max(before, taken_())));
}

void MaskKeeper::run(const std::stop_token& stop) {
  lower_thread_priority();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!pending()) {
      const auto wanted = [this] { return pending(); };
      const Kept* const kept = wish_ ? find_kept(wish_->request) : nullptr;
      if (kept != nullptr && kept->taken) {
        changed_.wait_for(lock, stop, kMemoryWait, wanted);
      } else {
        changed_.wait(lock, stop, wanted);
      }
      continue;
    }
    const Wish wish = *wish_;
    const std::stop_token current = current_.get_token();
    lock.unlock();
    work(wish, current);
    lock.lock();
  }
}

}  // namespace attnscope
