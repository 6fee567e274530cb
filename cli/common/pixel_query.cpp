#include "cli/common/pixel_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/split_text.h"
#include "io/capture/call/fact_guess.h"
#include "io/capture/facts/model_preset.h"

namespace attnscope {
namespace {

/// What --at says: a pixel of the decoded video and, perhaps, what a token covers.
struct Pixel {
  std::string text;  ///< as it was given
  int64_t frame = -1, x = -1, y = -1;
  int64_t first = -1;             ///< frames of the first latent frame; -1: not told
  std::array<int64_t, 3> cell{};  ///< frames, rows and columns of pixels; zeros: not told

  std::string words() const { return fmt::format("frame {}, x {}, y {}", frame, x, y); }
};

Error unreadable(const std::string& text) {
  return usage_error("--at " + one_line(text) +
                     ": expected frame=F,x=X,y=Y, counted from 0 (and cell=4x16x16, the frames, "
                     "rows and columns of pixels of a token, first=1, those frames of the first)");
}

/// A whole number of `least` or more.
int64_t number_in(std::string_view part, int64_t least, const std::string& text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || stop != part.data() + part.size() || value < least) {
    throw unreadable(text);
  }
  return value;
}

Pixel parse_pixel(const std::string& text) {
  // Larger numbers would overflow what they are multiplied with.
  constexpr int64_t kMostCell = 1 << 20;
  Pixel pixel{.text = text};
  for (const std::string_view part : split_text(text, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals),
                           value = part.substr(std::min(equals + 1, part.size()));
    if (name == "cell") {
      const auto sizes = split_text(value, 'x');
      if (sizes.size() != 3 || pixel.cell[0] != 0) throw unreadable(text);
      for (size_t i = 0; i < 3; ++i) pixel.cell[i] = number_in(sizes[i], 1, text);
      continue;
    }
    int64_t* const number = name == "frame"   ? &pixel.frame
                            : name == "x"     ? &pixel.x
                            : name == "y"     ? &pixel.y
                            : name == "first" ? &pixel.first
                                              : nullptr;
    if (number == nullptr || *number >= 0) throw unreadable(text);
    *number = number_in(value, name == "first" ? 1 : 0, text);
  }
  const bool large = pixel.first > kMostCell ||
                     *std::max_element(pixel.cell.begin(), pixel.cell.end()) > kMostCell;
  if (std::min({pixel.frame, pixel.x, pixel.y}) < 0 || large) throw unreadable(text);
  return pixel;
}

/// What a token covers, and what tells so.
struct KnownCell {
  VideoGeometry frames;             ///< without its pixels
  std::array<int64_t, 2> pixels{};  ///< rows and columns
  std::string origin;

  bool same_size(const KnownCell& other) const {
    return frames.first_frames == other.frames.first_frames &&
           frames.frames == other.frames.frames && frames.chunks == other.frames.chunks &&
           pixels == other.pixels;
  }
  std::string words() const {
    const std::string each = frames.chunks > 0 ? fmt::format(" of each {}", frames.chunks) : "";
    return fmt::format("cell {}x{}x{}, first {}{}", frames.frames, pixels[0], pixels[1],
                       frames.first_frames, each);
  }
};

KnownCell cell_of(const ModelPreset& preset, const std::string& origin) {
  return {preset.geometry, {preset.geometry.pixels, preset.geometry.pixels}, origin};
}

/// A cell whose first latent frame nobody told: that of a causal VAE holds one video frame; the
/// tubelets of two frames that encoders of video have are all alike.
KnownCell told_cell(const std::array<int64_t, 3>& cell, const std::string& origin) {
  return {{cell[0] <= 2 ? cell[0] : 1, cell[0], 0}, {cell[1], cell[2]}, origin};
}

/// The cell that all presets have which a word of the model's name is, or begins.
std::optional<KnownCell> cell_of_model(std::string model) {
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::replace_if(
      model.begin(), model.end(), [](char c) { return c == '/' || c == ','; }, ' ');
  std::optional<KnownCell> known;
  for (const std::string_view word : split_text(model, ' ')) {
    if (word.empty()) continue;
    for (const ModelPreset& preset : model_presets()) {
      const bool begins = preset.name.starts_with(word) && preset.name.size() > word.size() &&
                          preset.name[word.size()] == '-';
      if (preset.name != word && !begins) continue;
      const KnownCell own = cell_of(preset, "model " + std::string(word));
      if (known && !known->same_size(own)) return std::nullopt;
      known = own;
    }
  }
  return known;
}

/// The segment that is the video of a token map; null without a map.
const TokenSegment* video_segment(const TokenGrid& grid) {
  if (!grid.has_map() || grid.video_range().empty()) return nullptr;
  return &grid.segments()[grid.segment_number(grid.video_range().begin)];
}

/// The cell that the call's own facts tell.
std::optional<KnownCell> cell_of(const PixelSequence& sequence) {
  const TokenSegment* const segment = video_segment(sequence.grid);
  if (segment != nullptr && segment->cell[0] > 0) return told_cell(segment->cell, "its token map");
  if (sequence.preset.empty()) return cell_of_model(sequence.model);
  return cell_of(find_preset(sequence.preset), "preset " + sequence.preset);
}

KnownCell cell_of(const Pixel& pixel, const PixelSequence& sequence) {
  std::optional<KnownCell> known =
      pixel.cell[0] > 0 ? told_cell(pixel.cell, "as told") : cell_of(sequence);
  if (!known) {
    throw usage_error(fmt::format(
        "--at {}: how many frames and pixels a token of {} covers is not known; {}tell it: --at "
        "{},cell=4x16x16 (frames, rows and columns of pixels)",
        one_line(pixel.text), sequence.name,
        sequence.is_stored ? "" : "give --preset NAME, --as model=NAME (of a preset), or ",
        one_line(pixel.text)));
  }
  if (pixel.first > 0) known->frames.first_frames = pixel.first;
  return *known;
}

void check_range(const Pixel& pixel, const std::string& name, const char* axis, int64_t value,
                 IndexRange valid) {
  if (valid.contains(value)) return;
  throw usage_error(
      fmt::format("--at {}: {} {} is outside the decoded video of {} (valid {} to {})",
                  one_line(pixel.text), axis, value, name, valid.begin, valid.end - 1));
}

/// Latent frames, rows and columns of the video, which has a grid.
std::array<int64_t, 3> video_size(const TokenGrid& grid) {
  const TokenSegment* const segment = video_segment(grid);
  if (segment != nullptr) return segment->grid;
  return {grid.frames(), grid.height(), grid.width()};
}

/// The token of the pixel, as --query reads it.
std::string token_of(const Pixel& pixel, const PixelSequence& sequence, const KnownCell& cell) {
  const TokenGrid& grid = sequence.grid;
  const TokenSegment* const segment = video_segment(grid);
  const bool has_grid = segment != nullptr ? segment->has_grid() : grid.has_grid();
  if (!has_grid) {
    throw usage_error(fmt::format("--at {}: {}", one_line(pixel.text),
                                  grid.video_range().empty()
                                      ? sequence.name + " has no video"
                                      : sequence.name + " has no token grid; give --grid TxHxW"));
  }
  const std::array<int64_t, 3> size = video_size(grid);
  // Frames are those of the whole stream, of which the segment may be a later piece.
  const int64_t begin = segment != nullptr ? segment->first_frame : 0;
  check_range(pixel, sequence.name, "frame", pixel.frame,
              {TokenGrid::video_frames(begin, cell.frames).begin,
               TokenGrid::video_frames(begin + size[0] - 1, cell.frames).end});
  check_range(pixel, sequence.name, "x", pixel.x, {0, size[2] * cell.pixels[1]});
  check_range(pixel, sequence.name, "y", pixel.y, {0, size[1] * cell.pixels[0]});
  int64_t t = 0;
  while (!TokenGrid::video_frames(begin + t, cell.frames).contains(pixel.frame)) ++t;
  const std::string place =
      fmt::format("{},{},{}", t, pixel.y / cell.pixels[0], pixel.x / cell.pixels[1]);
  // --query counts a bare place in rows of the video, which another order does not have.
  return segment == nullptr || segment->is_raster() ? place : segment->name + ":" + place;
}

/// Which facts make a pixel another token of `b` than of `a`: "their cells differ (…; …)".
std::string difference_of(const PixelSequence& a, const KnownCell& cell_a, const PixelSequence& b,
                          const KnownCell& cell_b) {
  if (!cell_a.same_size(cell_b)) {
    return fmt::format("their cells differ ({}: {}; {}: {})", cell_a.words(),
                       one_line(cell_a.origin), cell_b.words(), one_line(cell_b.origin));
  }
  const auto size_a = video_size(a.grid), size_b = video_size(b.grid);
  if (size_a != size_b) {
    return fmt::format("their token grids differ ({} and {})", fmt::join(size_a, "x"),
                       fmt::join(size_b, "x"));
  }
  return "their token maps differ";
}

/// The preset that --preset names, or of which the call's grid was guessed; empty: none.
std::string preset_of(const CallEntry& call, const CaptureOptions& capture) {
  if (capture.texts.preset) return *capture.texts.preset;
  for (const char* const name : {"grid", "queries"}) {
    const auto fact = call.facts.find(name);
    if (fact == call.facts.end() || !fact->second.origin.starts_with(kGuessedFromPreset)) continue;
    return fact->second.origin.substr(kGuessedFromPreset.size());
  }
  return {};
}

}  // namespace

PixelSequence pixel_sequence(const CallEntry& call, bool keys, const CaptureOptions& capture) {
  const AttentionProblem& problem = *call.problem;
  return {keys ? problem.key_tokens() : problem.query_tokens(), problem.name(),
          preset_of(call, capture), call.model};
}

PixelSequence pixel_sequence(const StoredFacts& facts, const std::string& name) {
  return {facts.query_tokens, name, {}, facts.model, true};
}

std::vector<PixelSequence> pixel_sequences(std::span<const SelectedCall> calls, bool keys,
                                           const CaptureOptions& capture) {
  std::vector<PixelSequence> sequences;
  for (const SelectedCall& selected : calls) {
    sequences.push_back(pixel_sequence(*selected.call, keys, capture));
  }
  return sequences;
}

std::optional<VideoGeometry> known_frames(const PixelSequence& sequence) {
  const std::optional<KnownCell> known = cell_of(sequence);
  if (!known) return std::nullopt;
  return known->frames;
}

void settle_pixels(std::span<const PixelSequence> sequences, QueryOptions& queries,
                   const Console& console) {
  for (const std::string& text : queries.pixels) {
    const Pixel pixel = parse_pixel(text);
    std::optional<KnownCell> first;
    std::string token;
    for (const PixelSequence& sequence : sequences) {
      const KnownCell known = cell_of(pixel, sequence);
      const std::string own = token_of(pixel, sequence, known);
      if (!first) {
        console.say(fmt::format("{} is token {} ({}: {})", pixel.words(), own, known.words(),
                                one_line(known.origin)));
        first = known;
        token = own;
      } else if (own != token) {
        throw usage_error(fmt::format(
            "--at {}: is token {} of {} and token {} of {}: {}; choose heads whose videos have "
            "one cell and grid",
            one_line(text), token, sequences.front().name, own, sequence.name,
            difference_of(sequences.front(), *first, sequence, known)));
      }
    }
    const bool is_chosen =
        std::find(queries.coords.begin(), queries.coords.end(), token) != queries.coords.end();
    if (token.empty() || is_chosen) continue;
    queries.coords.push_back(token);
    queries.pixel_words.push_back(pixel.words());
  }
  queries.pixels.clear();
}

}  // namespace attnscope
