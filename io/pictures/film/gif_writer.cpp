#include "io/pictures/film/gif_writer.h"

#include <fmt/core.h>
#include <gif_lib.h>

#include <array>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/files/staged_file.h"
#include "io/pictures/film/gif_palette.h"

namespace attnscope {
namespace {

constexpr int kMaxSide = 65535;
/// Bits of a palette's indices; palettes are filled up with black.
constexpr int kPaletteBits = 8;

struct FreeMap {
  void operator()(ColorMapObject* map) const { GifFreeMapObject(map); }
};
using ColourTable = std::unique_ptr<ColorMapObject, FreeMap>;

ColourTable colour_table(const PaletteMaker& palette) {
  std::array<GifColorType, 1 << kPaletteBits> colours{};
  for (size_t i = 0; i < palette.colours().size(); ++i) {
    const Rgb c = palette.colours()[i];
    colours[i] = {c.r, c.g, c.b};
  }
  ColourTable table(GifMakeMapObject(static_cast<int>(colours.size()), colours.data()));
  if (!table) throw std::bad_alloc();
  return table;
}

/// giflib's encoder over a StagedFile.
class Encoder {
 public:
  explicit Encoder(StagedFile& file) : file_(file) {
    int error = 0;
    gif_ = EGifOpen(this, write_bytes, &error);
    if (gif_ == nullptr) throw failure(error);
    EGifSetGifVersion(gif_, true);
  }
  ~Encoder() {
    int ignored = 0;
    if (gif_ != nullptr) EGifCloseFile(gif_, &ignored);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void begin(int width, int height, const ColorMapObject* shared) {
    check(EGifPutScreenDesc(gif_, width, height, kPaletteBits, 0, shared));
    // Netscape's extension: 1, and how often to repeat (0: for ever).
    const std::array<uint8_t, 3> forever{1, 0, 0};
    check(EGifPutExtensionLeader(gif_, APPLICATION_EXT_FUNC_CODE));
    check(EGifPutExtensionBlock(gif_, 11, "NETSCAPE2.0"));
    check(EGifPutExtensionBlock(gif_, static_cast<int>(forever.size()), forever.data()));
    check(EGifPutExtensionTrailer(gif_));
  }

  void add(const Canvas& canvas, const PaletteMaker& palette, const ColorMapObject* own,
           int delay_ms) {
    const GraphicsControlBlock control{DISPOSE_DO_NOT, false, (delay_ms + 5) / 10,
                                       NO_TRANSPARENT_COLOR};
    std::array<GifByteType, 4> block{};
    EGifGCBToExtension(&control, block.data());
    check(EGifPutExtension(gif_, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(block.size()),
                           block.data()));
    check(EGifPutImageDesc(gif_, 0, 0, canvas.width(), canvas.height(), false, own));
    std::vector<GifPixelType> line(static_cast<size_t>(canvas.width()));
    for (int y = 0; y < canvas.height(); ++y) {
      const auto row = canvas.row(y);
      for (size_t x = 0; x < row.size(); ++x) line[x] = palette.index_of(row[x]);
      check(EGifPutLine(gif_, line.data(), canvas.width()));
    }
  }

  void finish() {
    int error = 0;
    GifFileType* gif = std::exchange(gif_, nullptr);
    if (EGifCloseFile(gif, &error) != GIF_OK || thrown_) throw failure(error);
  }

 private:
  // C++ exceptions must not pass through giflib's frames: they are kept, and it sees a short write.
  static int write_bytes(GifFileType* gif, const GifByteType* data, int length) {
    auto* encoder = static_cast<Encoder*>(gif->UserData);
    if (encoder->thrown_) return 0;
    try {
      encoder->file_.append(
          {reinterpret_cast<const std::byte*>(data), static_cast<size_t>(length)});
      return length;
    } catch (...) {
      encoder->thrown_ = std::current_exception();
      return 0;
    }
  }
  void check(int result) {
    if (result != GIF_OK || thrown_) throw_failure(gif_->Error);
  }
  [[noreturn]] void throw_failure(int error) {
    if (thrown_) std::rethrow_exception(thrown_);
    throw failure(error);
  }
  Error failure(int error) const {
    if (thrown_) std::rethrow_exception(thrown_);
    const char* text = GifErrorString(error);
    return file_error(file_.part_path().string(), "GIF", text == nullptr ? "write failed" : text);
  }

  StagedFile& file_;
  GifFileType* gif_ = nullptr;
  std::exception_ptr thrown_;
};

}  // namespace

void write_gif(int count, const std::function<Canvas(int)>& draw, const GifOptions& options,
               const std::filesystem::path& path, bool force) {
  PaletteMaker shared;
  int width = 0;
  int height = 0;
  for (int i = 0; i < (options.shared_palette ? count : 1); ++i) {
    const Canvas canvas = draw(i);
    width = canvas.width();
    height = canvas.height();
    if (width > kMaxSide || height > kMaxSide) {
      throw usage_error(fmt::format("{}: {} × {} pixels are more than a GIF can have ({} a side)",
                                    path.string(), width, height, kMaxSide));
    }
    if (options.shared_palette) shared.add(canvas);
  }
  shared.finish();
  const ColourTable table = options.shared_palette ? colour_table(shared) : nullptr;
  StagedFile file(path, force);
  Encoder encoder(file);
  encoder.begin(width, height, table.get());
  for (int i = 0; i < count; ++i) {
    const Canvas canvas = draw(i);
    if (canvas.width() != width || canvas.height() != height) {
      throw usage_error(fmt::format("{}: image {} of the animation has another size than the first",
                                    path.string(), i));
    }
    if (options.shared_palette) {
      encoder.add(canvas, shared, nullptr, options.delay_ms);
      continue;
    }
    PaletteMaker own;
    own.add(canvas);
    own.finish();
    encoder.add(canvas, own, colour_table(own).get(), options.delay_ms);
  }
  encoder.finish();
  file.commit();
}

}  // namespace attnscope
