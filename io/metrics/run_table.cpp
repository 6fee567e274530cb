#include "io/metrics/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

std::string group_text(const MetricGroup& group) {
  const HeadName& name = group.call.name;
  return one_line(call_words(name.step, name.layer, name.branch, name.kind, name.place));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Makes `count` undefined values of a variable: NaN, −1 (0 for kMeasured) or empty text.
MetricValues undefined_values(const MetricVariable& like, size_t count) {
  switch (like.type()) {
    case MetricType::f64:
      return std::vector<double>(count, std::numeric_limits<double>::quiet_NaN());
    case MetricType::f32:
      return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
    case MetricType::i32:
      return std::vector<int32_t>(count, like.name == kMeasured ? 0 : -1);
    case MetricType::text:
      break;
  }
  return std::vector<std::string>(count);
}

/// Copies `count` values.
void copy_values(const MetricValues& from, size_t at, MetricValues& to, size_t place,
                 size_t count) {
  std::visit(
      [&](auto& target) {
        const auto& source = std::get<std::decay_t<decltype(target)>>(from);
        std::copy_n(source.begin() + static_cast<int64_t>(at), count,
                    target.begin() + static_cast<int64_t>(place));
      },
      to);
}

void add_all(std::vector<int64_t>& list, const std::vector<int64_t>& more) {
  std::set<int64_t> all(list.begin(), list.end());
  all.insert(more.begin(), more.end());
  list.assign(all.begin(), all.end());
}

size_t place_in(const std::vector<int64_t>& list, int64_t value) {
  return static_cast<size_t>(std::lower_bound(list.begin(), list.end(), value) - list.begin());
}

/// Where each of the batch items and heads of a source stands in the whole group.
class SourcePlaces {
 public:
  SourcePlaces(const MetricGroup& from, const MetricGroup& to) : heads_(from.heads.size()) {
    for (const int64_t b : from.batch) {
      for (const int64_t h : from.heads) {
        places_.push_back(place_in(to.batch, b) * to.heads.size() + place_in(to.heads, h));
      }
    }
    all_ = to.batch.size() * to.heads.size();
  }

  /// Calls `copy(from, to)` with the numbers of a run's heads in the source and in the whole.
  template <typename Copy>
  void each(size_t source_run, size_t run, Copy copy) const {
    for (size_t i = 0; i < places_.size(); ++i) {
      copy(source_run * places_.size() + i, run * all_ + places_[i]);
    }
  }
  size_t heads() const { return heads_; }

 private:
  std::vector<size_t> places_;
  size_t heads_ = 0, all_ = 0;
};

/// Throws where a head that the source has is in the whole already.
void expect_new_heads(const MetricSource& source, const MetricGroup& whole,
                      const SourcePlaces& places) {
  const MetricVariable* const there = whole.find(kMeasured);
  const MetricVariable* const here = source.group->find(kMeasured);
  if (there == nullptr || here == nullptr) {
    throw file_error(source.where, group_text(*source.group), "does not tell which heads it has");
  }
  const auto& known = std::get<std::vector<int32_t>>(there->values);
  const auto& found = std::get<std::vector<int32_t>>(here->values);
  for (size_t r = 0; r < source.runs.size(); ++r) {
    places.each(r, source.runs[r], [&](size_t from, size_t to) {
      if (found[from] != 1 || known[to] != 1) return;
      throw file_error(source.where, group_text(*source.group),
                       "has a head of a run that another file has, too");
    });
  }
}

void add_source(const MetricSource& source, MetricGroup& whole) {
  const SourcePlaces places(*source.group, whole);
  expect_new_heads(source, whole, places);
  const MetricVariable& measured = *source.group->find(kMeasured);
  const auto& there = std::get<std::vector<int32_t>>(measured.values);
  const size_t heads = source.group->batch.size() * source.group->heads.size();
  for (MetricVariable& variable : whole.variables) {
    const MetricVariable* const from = source.group->find(variable.name);
    if (from == nullptr) continue;
    const auto cell = static_cast<size_t>(variable.cell());
    for (size_t r = 0; r < source.runs.size(); ++r) {
      if (variable.of_heads) {
        places.each(r, source.runs[r], [&](size_t at, size_t to) {
          if (there[at] == 1) {
            copy_values(from->values, at * cell, variable.values, to * cell, cell);
          }
        });
        continue;
      }
      const auto first = there.begin() + static_cast<int64_t>(r * heads);
      if (std::find(first, first + static_cast<int64_t>(heads), 1) ==
          first + static_cast<int64_t>(heads)) {
        continue;  // The run has nothing of this call.
      }
      copy_values(from->values, r * cell, variable.values, source.runs[r] * cell, cell);
    }
  }
}

/// Room for the values of all runs.
void make_room(MetricGroup& group, size_t runs) {
  const size_t heads = group.batch.size() * group.heads.size();
  for (MetricVariable& variable : group.variables) {
    const int64_t extents[] = {static_cast<int64_t>(runs),
                               variable.of_heads ? static_cast<int64_t>(heads) : 1,
                               variable.cell()};
    const auto count = checked_count(extents);
    if (!count || *count > (int64_t{1} << 40)) {
      throw usage_error(group_text(group) + ": " + variable.name + " is too large for a table");
    }
    variable.values = undefined_values(variable, static_cast<size_t>(*count));
  }
}

std::string word_of(const OrderedJson& value) {
  return one_line(value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace

OrderedJson MetricRun::json() const {
  OrderedJson json{{"id", id},          {"run", name},
                   {"prompt", prompt},  {"seed", seed ? OrderedJson(*seed) : OrderedJson()},
                   {"launch", launch},  {"rank", rank},
                   {"ranks", ranks},    {"complete", complete},
                   {"seconds", seconds}};
  OrderedJson& each = json["steps"] = OrderedJson::array();
  for (const auto& [step, time] : steps) each.push_back({step, time});
  if (!refused.empty()) json["refused"] = refused;
  return json;
}

MetricRun MetricRun::parse(const OrderedJson& json) {
  MetricRun run;
  json.at("id").get_to(run.id);
  json.at("run").get_to(run.name);
  json.at("prompt").get_to(run.prompt);
  if (!json.at("seed").is_null()) run.seed = json.at("seed").get<int64_t>();
  json.at("launch").get_to(run.launch);
  json.at("rank").get_to(run.rank);
  json.at("ranks").get_to(run.ranks);
  json.at("complete").get_to(run.complete);
  json.at("seconds").get_to(run.seconds);
  for (const OrderedJson& step : json.at("steps")) {
    run.steps[step.at(0).get<int64_t>()] = step.at(1).get<double>();
  }
  for (const OrderedJson& one : json.value("refused", OrderedJson::array())) {
    one.at("why").get_ref<const std::string&>();
    run.refused.push_back(one);
  }
  return run;
}

int64_t MetricVariable::cell() const {
  return checked_count(shape).value_or(std::numeric_limits<int64_t>::max());
}

const MetricVariable* MetricGroup::find(std::string_view name) const {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const MetricVariable& v) { return v.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

MetricVariable& MetricGroup::add(std::string name, std::string long_name, MetricValues values) {
  MetricVariable& variable = variables.emplace_back();
  variable.name = std::move(name);
  variable.long_name = std::move(long_name);
  variable.values = std::move(values);
  return variable;
}

HeadName group_key(const MetricGroup& group) {
  HeadName key = group.call.name;
  key.batch = 0;
  key.head = 0;
  return key;
}

void expect_group_fits(const MetricGroup& there, const MetricGroup& group,
                       const std::string& where) {
  const auto fail = [&](const std::string& what, const std::string& got,
                        const std::string& expected) {
    throw file_error(where, group_text(group),
                     fmt::format("{} is {} (expected {}, as the runs before it have): runs of "
                                 "other shapes belong in a file of their own",
                                 what, one_line(got), one_line(expected)));
  };
  const CallDescription &a = there.call, &b = group.call;
  if (a.grid != b.grid) fail("the grid", b.grid, a.grid);
  if (a.score != b.score) fail("the score", b.score, a.score);
  if (a.head_dim != b.head_dim) {
    fail("the width of a head", std::to_string(b.head_dim), std::to_string(a.head_dim));
  }
  for (const MetricVariable& variable : group.variables) {
    const MetricVariable* const known = there.find(variable.name);
    if (known == nullptr) continue;
    if (known->type() != variable.type() || known->of_heads != variable.of_heads) {
      fail(variable.name, "of another type", "that of the runs before it");
    }
    if (known->shape != variable.shape) {
      fail(variable.name, shape_text(variable.shape), shape_text(known->shape));
    }
    if (known->labels != variable.labels) {
      for (const auto& [axis, names] : variable.labels) {
        const auto expected = known->labels.find(axis);
        if (expected != known->labels.end() && expected->second == names) continue;
        fail(variable.name + ": " + axis, fmt::format("{}", fmt::join(names, ", ")),
             expected == known->labels.end()
                 ? "nothing"
                 : fmt::format("{}", fmt::join(expected->second, ", ")));
      }
    }
  }
}

std::string text_option(const OrderedJson& options, const char* name) {
  const auto found = options.find(name);
  return found != options.end() && found->is_string() ? found->get<std::string>() : "";
}

void expect_options(const OrderedJson& expected, const OrderedJson& found, const std::string& where,
                    bool mixed) {
  std::vector<std::string> names;
  for (const auto& [name, value] : expected.items()) names.push_back(name);
  for (const auto& [name, value] : found.items()) {
    if (!expected.contains(name)) names.push_back(name);
  }
  for (const std::string& name : names) {
    if (mixed && name == "backend") continue;
    const OrderedJson want = expected.contains(name) ? expected[name] : OrderedJson();
    const OrderedJson got = found.contains(name) ? found[name] : OrderedJson();
    if (want == got) continue;
    throw file_error(where, name,
                     fmt::format("holds metrics of other options: {} (expected {})", word_of(got),
                                 word_of(want)));
  }
}

std::vector<MetricGroup> join_groups(std::span<const MetricSource> sources, size_t runs) {
  std::map<HeadName, MetricGroup> whole;
  for (const MetricSource& source : sources) {
    const auto [found, is_new] = whole.try_emplace(group_key(*source.group));
    MetricGroup& group = found->second;
    if (is_new) {
      group.call = source.group->call;
    } else {
      expect_group_fits(group, *source.group, source.where);
    }
    add_all(group.batch, source.group->batch);
    add_all(group.heads, source.group->heads);
    for (const MetricVariable& variable : source.group->variables) {
      if (group.find(variable.name) != nullptr) continue;
      MetricVariable& added =
          group.add(variable.name, variable.long_name, undefined_values(variable, 0));
      added.of_heads = variable.of_heads;
      added.axes = variable.axes;
      added.shape = variable.shape;
      added.labels = variable.labels;
    }
  }
  std::vector<MetricGroup> groups;
  for (auto& [key, group] : whole) make_room(group, runs);
  for (const MetricSource& source : sources) {
    add_source(source, whole.at(group_key(*source.group)));
  }
  for (auto& [key, group] : whole) groups.push_back(std::move(group));
  return groups;
}

std::string unlike_name(const std::string& name, std::span<const MetricRun> runs) {
  std::string unlike = name;
  const auto is_taken = [&] {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const MetricRun& run) { return run.name == unlike; });
  };
  for (int n = 2; is_taken(); ++n) unlike = fmt::format("{} ({})", name, n);
  return unlike;
}

}  // namespace attnscope
