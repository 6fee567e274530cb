#include "io/rank_parts/call_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/mask_fact.h"
#include "io/files/json_types.h"
#include "io/rank_parts/join_tiles.h"
#include "io/tensors/file_tensor.h"

namespace attnscope {
namespace {

using SourcePtr = std::shared_ptr<const TensorSource>;

/// Facts that are each part's own, or that the joined tensors decide.
constexpr std::array<std::string_view, 4> kOwnFacts{"part", "head_offset", "format", "layout"};

std::string file_of(const RankCall& part) { return part.call->file.string(); }

std::string quoted(const std::string& json) {
  return json.size() > 60 ? json.substr(0, 57) + "..." : json;
}

/// Throws that two parts, which have to say the same, do not.
[[noreturn]] void refuse_difference(const RankCall& part, const RankCall& first,
                                    const std::string& what, const std::string& says,
                                    const std::string& first_says) {
  throw file_error(
      file_of(part), what,
      "is " + quoted(says) + ", but " + file_of(first) + " says " + quoted(first_says));
}

/// The axes of a tensor that is joined: batch items and heads, where it has them, tokens, and all
/// behind them a row.
struct Axes {
  int items = -1, heads = -1, tokens = 0;
};

/// Where heads and tokens of a part's tensor stand in the whole; `files`: the ranges of the tokens
/// in the tensor's order.
struct Place {
  IndexRange heads;
  std::vector<IndexRange> tokens;
};

/// Joins the parts of one call.
class Join {
 public:
  explicit Join(const std::vector<RankCall>& parts) : parts_(parts), first_(parts.front()) {
    for (const RankCall& part : parts_) check_part(part);
  }

  CallToWrite call() const {
    CallToWrite joined{first_.call->id, branch_of(first_.call->id, 0), {}, {}};
    const AttentionProblem& problem = *first_.call->problem;
    joined.tensors.push_back(head_tensor("q", "queries", &CallPart::queries, false,
                                         [](const AttentionProblem& x) { return x.q(); }));
    joined.tensors.push_back(head_tensor("k", "keys", &CallPart::keys, true,
                                         [](const AttentionProblem& x) { return x.k(); }));
    if (problem.v()) {
      joined.tensors.push_back(head_tensor("v", "keys", &CallPart::keys, true,
                                           [](const AttentionProblem& x) { return x.v(); }));
    }
    add_mask(joined.tensors);
    for (const std::string& name : map_tensors()) {
      joined.tensors.push_back(
          shared(name, [&](const CallEntry& call) { return call.map_tensors.at(name); }));
    }
    if (first_.call->lse) {
      joined.tensors.push_back(source_tensor(
          "lse", "queries", {0, 1, 2}, [](const CallEntry& call) { return call.lse; },
          [&](const RankCall& part) {
            return Place{heads_of(part), tokens_of(part.part.queries, part.call->lse->shape()[2])};
          }));
    }
    if (first_.call->out) add_outputs(joined.tensors);
    joined.facts = facts();
    return joined;
  }

 private:
  bool partial() const { return first_.part.has_some_tokens(); }

  // ---- facts

  /// Throws where the part cannot be one of the same call as the first.
  void check_part(const RankCall& part) const {
    const CallEntry& call = *part.call;
    const AttentionProblem& p = *call.problem;
    const AttentionProblem& q = *first_.call->problem;
    if (!call.mask_fact) {
      throw file_error(file_of(part), "mask",
                       "is " + p.mask().describe() + ", whose parts cannot be joined");
    }
    if (call.undivided) {
      throw file_error(file_of(part), "score",
                       "is linear:normaliser, whose parts cannot be joined");
    }
    if (!p.sinks().is_none()) {
      throw file_error(file_of(part), "sinks", "are there, and are not joined");
    }
    if (call.alibi.tensor) {
      throw file_error(file_of(part), "alibi_slopes", "are there, and are not joined");
    }
    if (call.relative_bias.tensor) {
      throw file_error(file_of(part), "relative_bias", "is there, and is not joined");
    }
    if (!p.scales().is_one()) {
      throw file_error(file_of(part), "scale", "is a list of numbers a head, which are not joined");
    }
    if (part.part.has_some_tokens() != partial()) {
      refuse_difference(part, first_, "part", part_text(part.part), part_text(first_.part));
    }
    if (part.part.whole != first_.part.whole) {
      refuse_difference(part, first_, "part: whole", part.part.whole, first_.part.whole);
    }
    check_facts(part);
    const auto require = [&](const char* what, auto get) {
      const std::string says = fmt::format("{}", get(p)), first_says = fmt::format("{}", get(q));
      if (says != first_says) refuse_difference(part, first_, what, says, first_says);
    };
    require("batch items", [](const auto& x) { return x.batch(); });
    require("head_dim", [](const auto& x) { return x.head_dim(); });
    require("dtype", [](const auto& x) { return dtype_name(x.q().dtype()); });
    require("query heads a key head",
            [](const auto& x) { return x.num_heads() / x.num_kv_heads(); });
    require("v", [](const auto& x) {
      return x.v() ? fmt::format("{} {}", dtype_name(x.v().dtype()), x.v().width())
                   : "not recorded";
    });
    if (call.head_offset % (p.num_heads() / p.num_kv_heads()) != 0) {
      throw file_error(file_of(part), "head_offset",
                       "begins within a group of heads that share keys: it cannot be joined");
    }
    for (const auto& [name, member] :
         {std::pair("tensor lse", &CallEntry::lse), {"tensor out", &CallEntry::out}}) {
      const bool has = call.*member != nullptr;
      if (has != (first_.call->*member != nullptr)) {
        refuse_difference(part, first_, name, has ? "recorded" : "not recorded",
                          has ? "not recorded" : "recorded");
      }
    }
  }

  bool is_own(const std::string& name) const {
    if (partial() && (name == "queries" || name == "keys")) return true;  // of the part alone
    return std::find(kOwnFacts.begin(), kOwnFacts.end(), name) != kOwnFacts.end();
  }

  void check_facts(const RankCall& part) const {
    std::set<std::string> names;
    for (const RankCall* one : {&part, &first_}) {
      for (const auto& [name, fact] : one->call->facts) names.insert(name);
    }
    for (const std::string& name : names) {
      if (is_own(name)) continue;
      const auto said = [&](const RankCall& one) -> std::string {
        const auto fact = one.call->facts.find(name);
        return fact == one.call->facts.end() ? "not recorded" : fact->second.json;
      };
      if (said(part) != said(first_)) {
        refuse_difference(part, first_, name, said(part), said(first_));
      }
    }
  }

  OrderedJson facts() const {
    OrderedJson facts;
    for (const auto& [name, fact] : first_.call->facts) {
      if (!is_own(name)) facts[name] = OrderedJson::parse(fact.json);
    }
    if (partial()) facts.update(OrderedJson::parse(first_.part.whole));
    facts["layout"] = "bhsd";
    facts["mask"] = first_.call->mask_fact->text();
    if (const int64_t offset = first_head(); offset > 0) facts["head_offset"] = offset;
    bool second = first_.call->mask_fact->is_second_format();
    for (const auto& [name, value] : facts.items()) second |= is_format_2_fact(name);
    facts["format"] = second ? kCaptureFormat2 : kCaptureFormat;
    return facts;
  }

  int64_t first_head() const {
    int64_t offset = first_.call->head_offset;
    for (const RankCall& part : parts_) offset = std::min(offset, part.call->head_offset);
    return offset;
  }

  // ---- places

  static IndexRange heads_of(const RankCall& part) {
    const int64_t offset = part.call->head_offset;
    return {offset, offset + part.call->problem->num_heads()};
  }

  static IndexRange key_heads_of(const RankCall& part) {
    const AttentionProblem& p = *part.call->problem;
    const int64_t offset = part.call->head_offset / (p.num_heads() / p.num_kv_heads());
    return {offset, offset + p.num_kv_heads()};
  }

  /// Where a part's tokens stand; all `count` of them where it says nothing.
  static std::vector<IndexRange> tokens_of(const std::vector<IndexRange>& ranges, int64_t count) {
    return ranges.empty() ? std::vector{IndexRange{0, count}} : ranges;
  }

  // ---- tensors

  /// A tile for each range of a part's tokens.
  static void add_tiles(std::vector<JoinTile>& tiles, const RankCall& part, const Place& place,
                        const std::function<void(int64_t, int64_t, IndexRange, std::byte*)>& read) {
    int64_t before = 0;
    for (const IndexRange& tokens : place.tokens) {
      tiles.push_back({place.heads, tokens, file_of(part),
                       [read, before](int64_t item, int64_t head, IndexRange rows, std::byte* out) {
                         read(item, head, {before + rows.begin, before + rows.end}, out);
                       }});
      before += tokens.size();
    }
  }

  /// q, k or v.
  template <typename Get>
  TensorToWrite head_tensor(const char* name, const char* what,
                            std::vector<IndexRange> CallPart::*ranges, bool keys,
                            const Get& get) const {
    std::vector<JoinTile> tiles;
    for (const RankCall& part : parts_) {
      const HeadTensor tensor = get(*part.call->problem);
      const Place place{keys ? key_heads_of(part) : heads_of(part),
                        tokens_of(part.part.*ranges, tensor.tokens())};
      add_tiles(tiles, part, place,
                [tensor](int64_t item, int64_t head, IndexRange rows, std::byte* out) {
                  tensor.read_rows(item, head, rows, out);
                });
    }
    const HeadTensor tensor = get(*first_.call->problem);
    const JoinTiles joined(std::move(tiles), what);
    return joined.tensor(name, tensor.dtype(),
                         {tensor.batch(), joined.heads(), joined.tokens(), tensor.width()},
                         tensor.batch(), tensor.row_bytes());
  }

  /// Another tensor: `get` has it of a part, `place` where its heads and tokens stand.
  template <typename Get, typename PlaceOf>
  TensorToWrite source_tensor(const std::string& name, const char* what, Axes axes, const Get& get,
                              const PlaceOf& place) const {
    const SourcePtr first = get(*first_.call);
    std::vector<int64_t> shape(first->shape().begin(), first->shape().end());
    std::vector<JoinTile> tiles;
    for (const RankCall& part : parts_) {
      const SourcePtr source = get(*part.call);
      check_shape(part, name, *source, *first, axes);
      add_tiles(tiles, part, place(part), reader(source, axes));
    }
    const JoinTiles joined(std::move(tiles), what);
    int64_t row_bytes = dtype_bytes(first->dtype());
    for (size_t axis = static_cast<size_t>(axes.tokens) + 1; axis < shape.size(); ++axis) {
      row_bytes = checked_mul(row_bytes, shape[axis]).value();
    }
    const int64_t items = axes.items < 0 ? 1 : shape[static_cast<size_t>(axes.items)];
    if (axes.heads >= 0) shape[static_cast<size_t>(axes.heads)] = joined.heads();
    shape[static_cast<size_t>(axes.tokens)] = joined.tokens();
    return joined.tensor(name, first->dtype(), shape, items, row_bytes);
  }

  static std::function<void(int64_t, int64_t, IndexRange, std::byte*)> reader(
      const SourcePtr& source, Axes axes) {
    return [source, axes](int64_t item, int64_t head, IndexRange rows, std::byte* out) {
      std::vector<int64_t> count(source->shape().begin(), source->shape().end());
      std::vector<int64_t> begin(count.size(), 0);
      const auto take = [&](int axis, int64_t first, int64_t n) {
        if (axis < 0) return;
        begin[static_cast<size_t>(axis)] = first;
        count[static_cast<size_t>(axis)] = n;
      };
      take(axes.items, item, 1);
      take(axes.heads, head, 1);
      take(axes.tokens, rows.begin, rows.size());
      source->read(begin, count, out);
    };
  }

  /// Throws where the axes that are not joined, or the dtypes, are not the first part's.
  void check_shape(const RankCall& part, const std::string& name, const TensorSource& source,
                   const TensorSource& first, Axes axes) const {
    const auto told = [&](const TensorSource& tensor) {
      std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
      for (int axis : {axes.heads, axes.tokens}) {
        const auto at = static_cast<size_t>(axis);
        if (axis >= 0 && at < shape.size()) shape[at] = 0;
      }
      return std::string(dtype_name(tensor.dtype())) + " " + shape_text(shape);
    };
    if (told(source) == told(first)) return;
    const auto full = [](const TensorSource& tensor) {
      return std::string(dtype_name(tensor.dtype())) + " " + shape_text(tensor.shape());
    };
    refuse_difference(part, first_, "tensor " + name, full(source), full(first));
  }

  /// A tensor that all parts have alike.
  template <typename Get>
  TensorToWrite shared(const std::string& name, const Get& get) const {
    return source_tensor(name, "places", {-1, -1, 0}, get, [&](const RankCall& part) {
      return Place{{0, 1}, {{0, get(*part.call)->shape()[0]}}};
    });
  }

  /// Names of the tensors that the map of the whole names.
  std::vector<std::string> map_tensors() const {
    const std::set<std::string> wanted = part_tensors(first_.part);
    std::vector<std::string> names;
    for (const auto& [name, source] : first_.call->map_tensors) {
      if (!partial() || wanted.count(name) != 0) names.push_back(name);
    }
    return names;
  }

  void add_mask(std::vector<TensorToWrite>& tensors) const {
    const MaskFact& fact = *first_.call->mask_fact;
    const SourcePtr mask = first_.call->mask;
    const auto get = [](const CallEntry& call) { return call.mask; };
    const size_t rank = mask ? mask->shape().size() : 0;
    const auto dims = static_cast<int>(rank);
    if (partial()) {
      const bool key_mask = fact.form == MaskForm::valid ||
                            (fact.form == MaskForm::tensor &&
                             (rank == 1 || (rank >= 2 && mask->shape()[rank - 2] == 1)));
      if (fact.form == MaskForm::none) return;
      const auto keys = first_.call->problem->num_keys();
      if (!key_mask || mask->shape().back() != keys) {
        throw file_error(file_of(first_), "mask",
                         "is " + fact.text() + ": of parts of the tokens only a mask of each " +
                             "key ([B, H, 1, keys], or valid) can be joined");
      }
      Axes axes{-1, -1, dims - 1};
      if (fact.form == MaskForm::valid && dims == 2) axes.items = 0;
      if (dims == 4) axes.items = 0;
      if (dims >= 3 && fact.form == MaskForm::tensor) axes.heads = dims - 3;
      tensors.push_back(
          source_tensor(std::string(fact.tensor()), "keys", axes, get, [&](const RankCall& part) {
            return Place{mask_heads(part, axes), part.part.keys};
          }));
      return;
    }
    if (!mask) return;
    const bool entries = fact.form == MaskForm::tensor || fact.form == MaskForm::blocks;
    const bool per_head = entries && dims >= 3;
    if (!per_head) {
      tensors.push_back(shared(std::string(fact.tensor()), get));
      return;
    }
    const Axes axes{dims == 4 ? 0 : -1, dims - 3, dims - 2};
    tensors.push_back(source_tensor(
        std::string(fact.tensor()), "rows of the mask", axes, get, [&](const RankCall& part) {
          const auto rows = part.call->mask->shape()[static_cast<size_t>(axes.tokens)];
          return Place{mask_heads(part, axes), {{0, rows}}};
        }));
  }

  /// The heads that the mask of a part is for: one for all where it does not tell them apart.
  static IndexRange mask_heads(const RankCall& part, Axes axes) {
    const bool apart =
        axes.heads >= 0 && part.call->mask->shape()[static_cast<size_t>(axes.heads)] > 1;
    return apart ? heads_of(part) : IndexRange{0, 1};
  }

  // ---- outputs

  /// The recorded rows of all parts, ascending by their places in the whole.
  void add_outputs(std::vector<TensorToWrite>& tensors) const {
    std::map<const CallEntry*, std::vector<int64_t>> recorded;  // by their places in the whole
    std::set<int64_t> all;
    for (const RankCall& part : parts_) {
      std::vector<int64_t>& rows = recorded[part.call];
      rows = rows_of(part);
      all.insert(rows.begin(), rows.end());
    }
    const std::vector<int64_t> sorted(all.begin(), all.end());
    const auto get = [](const CallEntry& call) { return call.out; };
    tensors.push_back(
        source_tensor("out", "output rows", {0, 1, 2}, get, [&](const RankCall& part) {
          Place place{heads_of(part), {}};
          for (int64_t row : recorded[part.call]) {
            const int64_t at = std::lower_bound(sorted.begin(), sorted.end(), row) - sorted.begin();
            place.tokens.push_back({at, at + 1});
          }
          return place;
        }));
    const auto count = static_cast<int64_t>(sorted.size());
    tensors.push_back({"out_rows", DType::i64, {count}, [sorted](const auto& write) {
                         write(std::as_bytes(std::span(sorted)));
                       }});
  }

  static std::vector<int64_t> rows_of(const RankCall& part) {
    const TensorSource& source = *part.call->out_rows;
    std::vector<int64_t> rows(static_cast<size_t>(source.shape()[0]));
    const int64_t begin = 0;
    source.read({&begin, 1}, source.shape(), reinterpret_cast<std::byte*>(rows.data()));
    const auto ranges = tokens_of(part.part.queries, part.call->problem->num_queries());
    for (int64_t& row : rows) {
      int64_t before = 0;
      for (const IndexRange& range : ranges) {
        if (row - before < range.size()) {
          row += range.begin - before;
          break;
        }
        before += range.size();
      }
    }
    return rows;
  }

  const std::vector<RankCall>& parts_;
  const RankCall& first_;
};

}  // namespace

CallToWrite join_call(const std::vector<RankCall>& parts) { return Join(parts).call(); }

}  // namespace attnscope
