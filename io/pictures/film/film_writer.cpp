#include "io/pictures/film/film_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "io/files/staged_file.h"
#include "io/pictures/png_writer.h"

extern char** environ;

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEncoder = "ffmpeg";
/// Of what the encoder complains about, so much is told.
constexpr size_t kMostComplaint = 300;

struct CloseStream {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A running ffmpeg that takes raw images, all as large as the first.
class VideoEncoder {
 public:
  VideoEncoder(const Canvas& first, int fps, const fs::path& part) : file_(part.string()) {
    complaints_.reset(std::tmpfile());
    std::array<int, 2> ends{-1, -1};
    // A socket, so that an encoder that has died is an error of send() and no signal.
    if (!complaints_ || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw file_error(file_, "ffmpeg", std::strerror(errno));
    }
    images_ = ends[0];
    const std::vector<std::string> words{kEncoder,
                                         "-v",
                                         "error",
                                         "-nostdin",
                                         "-f",
                                         "rawvideo",
                                         "-pixel_format",
                                         "rgb24",
                                         "-video_size",
                                         fmt::format("{}x{}", first.width(), first.height()),
                                         "-framerate",
                                         std::to_string(fps),
                                         "-i",
                                         "pipe:0",
                                         "-vf",
                                         picture_filter(first),
                                         "-pix_fmt",
                                         "yuv420p",
                                         "-colorspace",
                                         "bt709",
                                         "-color_primaries",
                                         "bt709",
                                         "-color_trc",
                                         "bt709",
                                         "-movflags",
                                         "+faststart",
                                         "-f",
                                         "mp4",
                                         "-y",
                                         "file:" + file_};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fileno(complaints_.get()), STDERR_FILENO);
    const int failed =
        posix_spawnp(&process_, kEncoder, &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (failed != 0) {
      process_ = -1;
      close(images_);
      throw file_error(file_, "ffmpeg", std::strerror(failed));
    }
  }
  ~VideoEncoder() {
    if (process_ < 0) return;
    close(images_);
    wait_for_end();
  }
  VideoEncoder(const VideoEncoder&) = delete;
  VideoEncoder& operator=(const VideoEncoder&) = delete;

  void add(const Canvas& canvas) {
    std::vector<std::byte> row(static_cast<size_t>(canvas.width()) * 3);
    for (int y = 0; y < canvas.height(); ++y) {
      std::memcpy(row.data(), canvas.row(y).data(), row.size());
      for (size_t sent = 0; sent < row.size();) {
        const ssize_t some = send(images_, row.data() + sent, row.size() - sent, MSG_NOSIGNAL);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) throw failure();
        sent += static_cast<size_t>(some);
      }
    }
  }

  void finish() {
    shutdown(images_, SHUT_WR);
    const int status = wait_for_end();
    close(images_);
    process_ = -1;
    if (status != 0) throw file_error(file_, "ffmpeg", complaint());
  }

 private:
  /// Even sides, the background's colour where they were odd. Players take the colours of videos
  /// that do not tell theirs for BT.601 or, of large ones, BT.709: these tell.
  static std::string picture_filter(const Canvas& first) {
    const Rgb ground = first.at(first.width() - 1, first.height() - 1);
    return fmt::format(
        "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=0x{:02x}{:02x}{:02x},"
        "scale=out_color_matrix=bt709:out_range=tv",
        ground.r, ground.g, ground.b);
  }

  int wait_for_end() const {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  /// It has ended before it had all images.
  Error failure() {
    close(images_);
    wait_for_end();
    process_ = -1;
    return file_error(file_, "ffmpeg", complaint());
  }
  std::string complaint() const {
    std::string text(kMostComplaint, '\0');
    std::rewind(complaints_.get());
    text.resize(std::fread(text.data(), 1, text.size(), complaints_.get()));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? "ended without saying why" : one_line(text);
  }

  const std::string file_;
  std::unique_ptr<std::FILE, CloseStream> complaints_;
  int images_ = -1;
  pid_t process_ = -1;
};

std::string picture_name(int number) { return fmt::format("frame-{:04}.png", number); }

/// True of a folder that has nothing but pictures of an earlier film.
bool is_old_sequence(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !name.starts_with("frame-")) return false;
  }
  return true;
}

void check_folder(const fs::path& folder, bool force) {
  if (!fs::exists(fs::symlink_status(folder))) return;
  if (!fs::is_directory(folder)) throw file_error(folder.string(), "", "is no folder");
  if (fs::is_empty(folder)) return;
  if (!force) throw file_error(folder.string(), "", "already exists (replace it with --force)");
  if (is_old_sequence(folder)) return;
  throw file_error(folder.string(), "", "has other files than pictures of a film");
}

}  // namespace

bool can_write_mp4() {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return false;
  const std::string folders = path;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string file = folders.substr(at, end - at) + "/" + kEncoder;
    if (end > at && access(file.c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

void check_mp4(const fs::path& path) {
  if (can_write_mp4()) return;
  throw Error(ErrorCode::unavailable,
              one_line(path.string()) +
                  ": an .mp4 needs ffmpeg, which is not in PATH; write a .gif or a folder/");
}

void write_mp4(int count, const std::function<Canvas(int)>& draw, int fps, const fs::path& path,
               bool force) {
  check_mp4(path);
  StagedFile file(path, force);
  std::optional<VideoEncoder> encoder;
  int width = 0, height = 0;
  for (int i = 0; i < count; ++i) {
    const Canvas canvas = draw(i);
    if (!encoder) {
      width = canvas.width();
      height = canvas.height();
      encoder.emplace(canvas, fps, file.part_path());
    }
    if (canvas.width() != width || canvas.height() != height) {
      throw usage_error(fmt::format("{}: image {} of the film has another size than the first",
                                    path.string(), i));
    }
    encoder->add(canvas);
  }
  if (!encoder) throw usage_error(path.string() + ": a film of no images");
  encoder->finish();
  file.commit();
}

void write_png_sequence(int count, const std::function<Canvas(int)>& draw, const fs::path& folder,
                        bool force) {
  const fs::path target = folder.has_filename() ? folder : folder.parent_path();
  const fs::path part = target.string() + ".part";
  try {
    check_folder(target, force);
    // The folder may hold what an interrupted run left, and nothing else.
    check_folder(part, true);
    fs::remove_all(part);
    fs::create_directories(part);
    for (int i = 0; i < count; ++i) {
      const Canvas canvas = draw(i);
      StagedFile file(part / picture_name(i), false);
      PngWriter png(file, canvas.width(), canvas.height());
      for (int y = 0; y < canvas.height(); ++y) png.write_row(canvas.row(y));
      png.finish();
      file.commit();
    }
    fs::remove_all(target);
    fs::rename(part, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(part, ignored);
    try {
      throw;
    } catch (const fs::filesystem_error& error) {
      throw file_error(target.string(), "", error.code().message());
    }
  }
}

}  // namespace attnscope
