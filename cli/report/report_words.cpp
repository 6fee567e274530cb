#include "cli/report/report_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "cli/common/shell_words.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/number_words.h"
#include "core/problem/head_set.h"
#include "core/products/tokens/special_token.h"
#include "core/products/tokens/spelt_words.h"
#include "core/products/word_means.h"
#include "core/stream/panel.h"

namespace attnscope {
namespace {

constexpr size_t kMostStrips = 40;
/// Names that a line lists.
constexpr size_t kListedNames = 12;
/// How many times its uniform share a head gives to the text that looks at it.
constexpr double kTextLift = 2;
constexpr const char* kUncond = "uncond";

/// Why calls have no words, the further the call got the later.
enum class Obstacle : uint8_t {
  no_heads,
  no_grid,
  no_text,
  no_strings,
  no_words,
  no_shares,
  no_lift
};

std::string obstacle_text(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::no_heads:
      return "no head was measured";
    case Obstacle::no_grid:
      return "no query is a video token with a place on a grid (--grid TxHxW tells one)";
    case Obstacle::no_text:
      return "no key of a video query is a text token (--text SPAN tells which are)";
    case Obstacle::no_strings:
      return "no token strings were recorded (attnscope convert --tokens FILE adds them)";
    case Obstacle::no_words:
      return "the prompt has none: its tokens are special, padding or punctuation";
    case Obstacle::no_shares:
      return "weights of scores that are not normalised are no shares of a row";
    case Obstacle::no_lift:
      break;
  }
  return "no head gives the text twice what it would have if all keys weighed the same";
}

/// The words of a batch item's prompt that have strips, and what has none.
struct PromptStrips {
  std::vector<SpeltWord> words;
  std::vector<std::string> left_out;

  bool same_words(const PromptStrips& other) const {
    return std::equal(words.begin(), words.end(), other.words.begin(), other.words.end(),
                      [](const SpeltWord& a, const SpeltWord& b) {
                        return a.text == b.text && a.tokens == b.tokens;
                      });
  }
};

/// "special tokens: [CLS], [SEP]"; adds nothing where there are no names.
void add_names(const char* what, const std::vector<std::string>& names,
               std::vector<std::string>& lines) {
  if (names.empty()) return;
  const size_t listed = std::min(names.size(), kListedNames);
  std::string line = fmt::format(
      "{}: {}", what, fmt::join(names.begin(), names.begin() + static_cast<int64_t>(listed), " "));
  if (listed < names.size()) line += fmt::format(" and {} more", names.size() - listed);
  lines.push_back(std::move(line));
}

PromptStrips prompt_strips(const CallEntry& call, int64_t batch) {
  const TokenGrid& keys = call.problem->key_tokens();
  const IndexRange text = keys.text_range();
  const std::span<const std::string> strings = call.tokens_of(batch);
  const auto named = std::min<int64_t>(text.size(), std::ssize(strings));
  PromptStrips strips;
  std::vector<std::string> special, punctuation;
  int64_t padding = 0;
  for (const SpeltWord& word : spelt_words(strings.first(static_cast<size_t>(named)))) {
    const std::string spelt = one_line(word.text);
    if (keys.segment(text.begin + word.tokens.end - 1, batch) == Segment::padding ||
        is_padding_token(strings[static_cast<size_t>(word.tokens.begin)])) {
      padding += word.tokens.size();
    } else if (word.kind == SpeltWord::Kind::special) {
      special.push_back(spelt);
    } else if (word.kind == SpeltWord::Kind::punctuation) {
      punctuation.push_back(spelt.empty() ? "(a mark of the tokenizer's alone)" : spelt);
    } else {
      strips.words.push_back({spelt, word.tokens, word.kind});
    }
  }
  for (int64_t i = named; i < text.size(); ++i) {
    if (keys.segment(text.begin + i, batch) == Segment::padding) ++padding;
  }
  add_names("special tokens", special, strips.left_out);
  add_names("punctuation", punctuation, strips.left_out);
  if (padding > 0) strips.left_out.push_back(fmt::format("padding: {} tokens", padding));
  if (named < text.size() && padding < text.size() - named) {
    strips.left_out.push_back(
        fmt::format("text tokens without a recorded string: {} to {}", named, text.size() - 1));
  }
  return strips;
}

/// A head that looks at the text.
struct WordHead {
  int64_t place = 0;  ///< among the records
  const CallEntry* call = nullptr;
  size_t prompt = 0;  ///< of the prompts
  bool all_text = false;
  double mass = 0;  ///< mean over the video's rows of that on text that is no padding
};

/// All heads that look at the text, and their prompts.
class WordHeads {
 public:
  explicit WordHeads(const ReportWork& work) : records_(work.records) {
    for (size_t i = 0; i < records_.size(); ++i) {
      places_.emplace(records_[i].name, static_cast<int64_t>(i));
    }
    for (const SelectedCall& selected : work.calls) {
      for (const int64_t batch : selected.batch) add_item(selected, batch);
    }
  }

  /// Those of the best head's prompt and grid, the best first. Empty: obstacle() says why.
  std::vector<WordHead> best() {
    const auto is_uncond = [&](const WordHead& head) { return name(head).branch == kUncond; };
    if (!std::all_of(heads_.begin(), heads_.end(), is_uncond)) {
      left_uncond_ = std::erase_if(heads_, is_uncond) > 0;
    }
    std::sort(heads_.begin(), heads_.end(),
              [&](const WordHead& a, const WordHead& b) { return rank(a) < rank(b); });
    std::vector<WordHead> alike;
    for (const WordHead& head : heads_) {
      if (is_like(head, heads_.front())) alike.push_back(head);
    }
    return alike;
  }

  Obstacle obstacle() const { return obstacle_; }
  /// True where heads of the branch uncond look at the text, too.
  bool left_uncond() const { return left_uncond_; }
  const PromptStrips& prompt(const WordHead& head) const { return prompts_[head.prompt]; }
  const HeadName& name(const WordHead& head) const {
    return records_[static_cast<size_t>(head.place)].name;
  }

 private:
  /// Ascending: the best head first.
  std::tuple<double, double, HeadName> rank(const WordHead& head) const {
    // Where all keys are text no head gives it more than another.
    const auto& entropy = records_[static_cast<size_t>(head.place)].metrics.entropy.value;
    return {-(head.all_text ? 1 : head.mass), head.all_text ? entropy.value_or(0) : 0, name(head)};
  }

  bool is_like(const WordHead& a, const WordHead& b) const {
    const TokenGrid& grid = a.call->problem->query_tokens();
    const TokenGrid& other = b.call->problem->query_tokens();
    return grid.frames() == other.frames() && grid.height() == other.height() &&
           grid.width() == other.width() && prompt(a).same_words(prompt(b)) &&
           a.call->problem->key_tokens().text_range().size() ==
               b.call->problem->key_tokens().text_range().size();
  }

  void stop_at(Obstacle obstacle) { obstacle_ = std::max(obstacle_, obstacle); }

  void add_item(const SelectedCall& selected, int64_t batch) {
    const AttentionProblem& problem = *selected.call->problem;
    const TokenGrid& keys = problem.key_tokens();
    const IndexRange text = keys.text_range();
    if (!problem.query_tokens().has_grid()) return stop_at(Obstacle::no_grid);
    if (text.empty()) return stop_at(Obstacle::no_text);
    if (selected.call->tokens_of(batch).empty()) return stop_at(Obstacle::no_strings);
    PromptStrips strips = prompt_strips(*selected.call, batch);
    if (strips.words.empty()) return stop_at(Obstacle::no_words);
    if (!is_normalised(problem.score())) return stop_at(Obstacle::no_shares);
    int64_t counted = 0;
    for (int64_t i = text.begin; i < text.end; ++i) {
      counted += keys.segment(i, batch) == Segment::padding ? 0 : 1;
    }
    const double usual = static_cast<double>(counted) / static_cast<double>(keys.tokens());
    prompts_.push_back(std::move(strips));
    for (const int64_t head : selected.heads) {
      const auto there = places_.find(head_name(problem.id(), batch, head));
      if (there == places_.end()) continue;
      stop_at(Obstacle::no_lift);
      const HeadMetrics& metrics = records_[static_cast<size_t>(there->second)].metrics;
      if (!metrics.text_mass.value) continue;
      WordHead found{there->second, selected.call, prompts_.size() - 1,
                     text.size() == keys.tokens(),
                     *metrics.text_mass.value - metrics.padding_mass.value.value_or(0)};
      if (found.all_text || found.mass >= kTextLift * usual) heads_.push_back(found);
    }
  }

  const std::span<const HeadRecord> records_;
  std::map<HeadName, int64_t> places_;
  std::vector<PromptStrips> prompts_;
  std::vector<WordHead> heads_;
  Obstacle obstacle_ = Obstacle::no_heads;
  bool left_uncond_ = false;
};

using Grid = std::array<int64_t, 3>;

Grid grid_of(const WordHead& head) {
  const TokenGrid& grid = head.call->problem->query_tokens();
  return {grid.frames(), grid.height(), grid.width()};
}

/// The places of an axis of which every stride-th is taken, from the middle of the first run.
std::vector<int64_t> strided(int64_t extent, int64_t stride) {
  std::vector<int64_t> places;
  for (int64_t first = 0; first < extent; first += stride) {
    places.push_back(std::min(first + (stride - 1) / 2, extent - 1));
  }
  return places;
}

/// The sequence's rows of the strips' cells, row-major.
std::vector<int64_t> rows_of_cells(const TokenGrid& grid, int64_t stride) {
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < grid.frames(); ++t) {
    for (const int64_t y : strided(grid.height(), stride)) {
      for (const int64_t x : strided(grid.width(), stride))
        rows.push_back(grid.index_of({t, y, x}));
    }
  }
  return rows;
}

HeadTask task_of(const WordHead& head, const HeadName& name) {
  const AttentionProblem& problem = *head.call->problem;
  return {&problem,  name.batch,
          name.head, problem.query_tokens().video_range(),
          {},        problem.key_tokens().text_range()};
}

/// The strips of one report while they are made.
class WordStrips {
 public:
  WordStrips(ReportWork& work, WordHeads& heads, std::vector<WordHead> best, double most_flops)
      : work_(work), heads_(heads), best_(std::move(best)), found_(best_.size()) {
    const double flops = full_flops(task_of(best_.front(), heads_.name(best_.front())));
    const auto [frames, height, width] = grid_of(best_.front());
    plan_ = plan_words(std::min(best_.size(), size_t{kMostWordHeads}), flops, height, width,
                       work.sample > 0 ? most_flops : INFINITY);
    grid_ = {frames, ceil_div(height, plan_.stride), ceil_div(width, plan_.stride)};
    best_.resize(plan_.heads);
    for (const SpeltWord& word : prompt().words) tokens_.push_back(word.tokens);
  }

  /// False: there was no time for any head.
  bool compute() {
    const int64_t rows = grid_[0] * grid_[1] * grid_[2];
    const int64_t keys = best_.front().call->problem->key_tokens().text_range().size();
    const MemoryReservation lists =
        work_.run.budget().reserve(plan_.stride > 1 ? rows * 8 : 0, "the rows of the words");
    sums_.emplace(tokens_, rows, keys, work_.run.budget());
    size_t done = 0;
    for (; done < best_.size() && work_.time_left(); ++done) {
      HeadTask task = task_of(best_[done], heads_.name(best_[done]));
      std::vector<int64_t> list;
      if (plan_.stride > 1) {
        list = rows_of_cells(task.problem->query_tokens(), plan_.stride);
        task.row_list = list;
      }
      work_.run.run({&task, 1}, *sums_);
    }
    stopped_ = best_.size() - done;
    best_.resize(done);
    return done > 0;
  }

  ReportSection section() {
    choose_strips();
    ReportSection section;
    OrderedJson strips = OrderedJson::array();
    for (size_t n = 0; n < strips_.size(); ++n) {
      const Strip& strip = strips_[n];
      const SpeltWord& word = prompt().words[strip.word];
      const std::string data = fmt::format("word-{}", n);
      strips.push_back({{"word", word.text},
                        {"token", word.tokens.begin},
                        {"tokens", word.tokens.size()},
                        {"data", data},
                        {"mass", strip.mass},
                        {"largest", strip.largest}});
      section.data.push_back({data, coded(sums_->mean(strip.word))});
    }
    OrderedJson places = OrderedJson::array();
    for (const WordHead& head : best_) places.push_back(head.place);
    section.facts = {{"text", text()},         {"heads", std::move(places)},
                     {"grid", grid_},          {"low", 0},
                     {"high", largest_},       {"strips", std::move(strips)},
                     {"left_out", left_out()}, {"frames", frames()},
                     {"command", command()}};
    if (plan_.stride > 1) section.facts["stride"] = plan_.stride;
    return section;
  }

  /// Heads that there was no time for.
  size_t stopped() const { return stopped_; }

 private:
  struct Strip {
    size_t word = 0;
    double mass = 0;
    double largest = 0;
  };

  const PromptStrips& prompt() const { return heads_.prompt(best_.front()); }

  /// The heaviest words, in the order of the prompt.
  void choose_strips() {
    for (size_t w = 0; w < tokens_.size(); ++w) {
      double sum = 0, largest = 0;
      int64_t live = 0;
      for (const float weight : sums_->mean(w)) {
        if (std::isnan(weight)) continue;
        sum += double{weight};
        largest = std::max(largest, double{weight});
        ++live;
      }
      if (live > 0) strips_.push_back({w, sum / static_cast<double>(live), largest});
    }
    std::stable_sort(strips_.begin(), strips_.end(),
                     [](const Strip& a, const Strip& b) { return a.mass > b.mass; });
    lighter_ = strips_.size() - std::min(strips_.size(), kMostStrips);
    strips_.resize(strips_.size() - lighter_);
    std::sort(strips_.begin(), strips_.end(),
              [](const Strip& a, const Strip& b) { return a.word < b.word; });
    for (const Strip& strip : strips_) largest_ = std::max(largest_, strip.largest);
  }

  std::vector<std::byte> coded(const std::vector<float>& weights) const {
    std::vector<std::byte> codes(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      const double weight = double{weights[i]};
      if (std::isnan(weight) || weight <= 0) continue;
      codes[i] = static_cast<std::byte>(1 + std::lround(254 * std::min(weight / largest_, 1.0)));
    }
    return codes;
  }

  std::string text() const {
    std::string text = fmt::format(
        "How much each token of the video gives to a word of the prompt, to all tokens of it "
        "together: the mean over {} of the {} heads that look at the text. ",
        best_.size() == found_ ? "all" : std::to_string(best_.size()), found_);
    text += best_.front().all_text
                ? "All keys are text there; of such heads those of smallest entropy are taken. "
                : fmt::format(
                      "They give it at least {} times what it would have if all keys weighed "
                      "the same; those are taken that give it most, {} to {} of a "
                      "row (padding is not counted). ",
                      kTextLift, share_words(best_.back().mass), share_words(best_.front().mass));
    if (heads_.left_uncond()) text += "Heads of the branch uncond are left out. ";
    text +=
        "A word that occurs twice has a strip each time. All strips have one scale, from 0 to "
        "their largest weight.";
    if (plan_.stride > 1) {
      text += fmt::format(" One in {} rows and columns of each frame's grid was computed.",
                          plan_.stride);
    }
    return text;
  }

  std::vector<std::string> left_out() const {
    std::vector<std::string> lines = prompt().left_out;
    if (lighter_ > 0) {
      lines.push_back(fmt::format("words: {} that get less than the {} that are shown", lighter_,
                                  strips_.size()));
    }
    return lines;
  }

  OrderedJson frames() const {
    OrderedJson frames = OrderedJson::array();
    for (int64_t t = 0; t < grid_[0]; ++t) {
      const bool known = t < std::ssize(work_.pictures);
      const int64_t picture = known ? work_.pictures[static_cast<size_t>(t)] : -1;
      frames.push_back(picture < 0 ? OrderedJson() : OrderedJson(picture));
    }
    return frames;
  }

  /// Of the first head.
  std::string command() const {
    const HeadName& name = heads_.name(best_.front());
    HeadPattern pattern = HeadPattern::of(name);
    std::string branch = pattern.branch.value_or("");
    pattern.branch.reset();
    pattern.kind.reset();
    pattern.batch.reset();
    pattern.chunk.reset();
    std::string words = fmt::format("attnscope render {} --picture text --pick {}",
                                    work_.input_word, shell_word(pattern.text()));
    if (!branch.empty() && branch != "all") words += " --branch " + shell_word(branch);
    if (name.batch > 0) words += fmt::format(" --batch {}", name.batch);
    return words + " -o words.png";
  }

  ReportWork& work_;
  WordHeads& heads_;
  std::vector<WordHead> best_;
  const size_t found_;
  WordsPlan plan_;
  Grid grid_{};
  std::vector<IndexRange> tokens_;
  std::optional<WordMeans> sums_;
  size_t stopped_ = 0;
  std::vector<Strip> strips_;
  size_t lighter_ = 0;
  double largest_ = 0;
};

}  // namespace

WordsPlan plan_words(size_t heads, double head_flops, int64_t height, int64_t width, double flops) {
  WordsPlan plan{heads, 1};
  const auto fits = [&](double of_head) {
    return static_cast<double>(plan.heads) * of_head <= flops;
  };
  while (plan.heads > 2 && !fits(head_flops)) --plan.heads;
  const auto share = [&] {
    return static_cast<double>(ceil_div(height, plan.stride) * ceil_div(width, plan.stride)) /
           static_cast<double>(height * width);
  };
  while (!fits(head_flops * share()) && plan.stride < std::max(height, width)) ++plan.stride;
  return plan;
}

std::optional<ReportSection> words_section(ReportWork& work, std::vector<std::string>& lacks,
                                           double flops) {
  if (work.run.is_plan_only()) return std::nullopt;
  const auto lack = [&](const std::string& why) {
    lacks.push_back("no words over the frames: " + why);
    return std::nullopt;
  };
  WordHeads heads(work);
  std::vector<WordHead> best = heads.best();
  if (best.empty()) return lack(obstacle_text(heads.obstacle()));
  try {
    WordStrips strips(work, heads, std::move(best), flops);
    if (!strips.compute()) return lack("there was no time left (--budget-time)");
    ReportSection section = strips.section();
    if (section.data.empty()) return lack("the mask leaves no video query of them");
    if (strips.stopped() > 0) {
      lacks.push_back(
          fmt::format("words over the frames: {} heads that were to be averaged, too, "
                      "had no time left (--budget-time)",
                      strips.stopped()));
    }
    return section;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::resource) throw;
    return lack(error.what());
  }
}

}  // namespace attnscope
