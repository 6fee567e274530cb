#include "cli/diff/diff_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/diff/diff_forms.h"
#include "cli/run/run_steps.h"
#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/results/film_files.h"

namespace attnscope {
namespace {

constexpr int64_t kUsualBlock = 64;
const std::vector<std::string> kProducts{"pooled", "frames", "volume"};

int64_t parse_block(const std::string& product, std::string_view number) {
  int64_t block = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, block);
  if (error == std::errc() && stop == end && block >= 1 && block <= int64_t{1} << 30) return block;
  throw usage_error(fmt::format("--product {}: expected pooled:N, N from 1 on", one_line(product)));
}

/// A form, and of blocks their side.
struct ProductChoice {
  MapForm form = MapForm::pooled;
  int64_t block = kUsualBlock;
};

ProductChoice parse_map_product(const std::string& product) {
  if (product == "pooled") return {};
  if (product.starts_with("pooled:")) {
    return {MapForm::pooled, parse_block(product, std::string_view(product).substr(7))};
  }
  if (product == "frames") return {MapForm::frames, 0};
  if (product == "volume") return {MapForm::volume, 0};
  const std::string nearest = nearest_word(product, kProducts);
  throw usage_error(fmt::format("--product {}: no such product{} ({})", one_line(product),
                                nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                fmt::join(map_product_words(), ", ")));
}

void check_map_options(const DiffOptions& o, MapForm form) {
  const std::string extension = std::filesystem::path(o.out).extension().string();
  const bool of_volumes = extension == ".npy" || is_animation_name(o.out);
  const auto pictures = picture_endings();
  const bool drawn = std::find(pictures.begin(), pictures.end(), extension) != pictures.end();
  const bool known = extension == ".h5" || drawn || (form == MapForm::volume && of_volumes) ||
                     (form == MapForm::frames && o.out.empty());
  if (!known) {
    throw usage_error(fmt::format("--product {}: -o FILE must end in {} (got \"{}\")", o.product,
                                  form == MapForm::volume
                                      ? ".h5, .npy, .png, .svg, .pdf, .gif or .mp4"
                                      : ".h5, .png, .svg or .pdf",
                                  extension));
  }
  if (form != MapForm::volume && o.queries.any()) {
    throw usage_error(
        fmt::format("--query, --at, --index and --text-token choose the rows of --product "
                    "volume (got {})",
                    o.product));
  }
}

/// Maps of one file have the same axes.
void check_pairs_alike(const DiffOptions& o, const std::vector<ComparedPair>& pairs) {
  const ComparedPair& first = pairs.front();
  for (const ComparedPair& pair : pairs) {
    if (!pair.same_tokens()) {
      throw usage_error(fmt::format(
          "--product {} needs maps of the same tokens: {} and {} are compared segment by segment, "
          "without --product",
          o.product, pair.a.label, pair.b.label));
    }
    if (pair.rows == first.rows && pair.keys == first.keys &&
        pair.query_at(0) == first.query_at(0) &&
        pair.a.query_tokens->same_places(*first.a.query_tokens) &&
        pair.a.key_tokens->same_places(*first.a.key_tokens)) {
      continue;
    }
    throw usage_error(fmt::format(
        "--product {}: {} and {} have other tokens, or other parts of them are there: select calls "
        "of one kind with --kind",
        o.product, first.a.label, pair.a.label));
  }
}

}  // namespace

std::vector<std::string> map_product_words() { return {"pooled[:N]", "frames", "volume"}; }

class DiffMaps::Form {
 public:
  Form(const DiffOptions& o, const DiffSides& sides, std::vector<ComparedPair>& pairs) {
    const ProductChoice choice = parse_map_product(o.product);
    check_map_options(o, choice.form);
    check_pairs_alike(o, pairs);
    const DiffJob job{o, sides, pairs};
    form_ = choice.form == MapForm::pooled   ? make_pooled_form(job, choice.block)
            : choice.form == MapForm::frames ? make_frame_form(job)
                                             : make_volume_form(job, pairs);
  }
  const DiffForm& operator*() const { return *form_; }

 private:
  std::unique_ptr<const DiffForm> form_;
};

DiffMaps::DiffMaps(const DiffOptions& options, const DiffSides& sides,
                   std::vector<ComparedPair>& pairs)
    : form_(std::make_unique<const Form>(options, sides, pairs)) {}

DiffMaps::~DiffMaps() = default;

MakePairSink DiffMaps::sink_maker() const {
  return [this](const ComparedPair& pair) { return (**form_).make_sink(pair); };
}

std::optional<PageSize> DiffMaps::page() const { return (**form_).page(); }

void DiffMaps::run(const PairRunner& runner, const RunPlan& plan, const std::stop_token& stop,
                   const std::function<void()>& before_end, const Console& console) const {
  (**form_).run({runner, plan, sink_maker(), stop, before_end, console});
}

}  // namespace attnscope
