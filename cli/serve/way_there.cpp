#include "cli/serve/way_there.h"

#include <fmt/core.h>

#include <cstdlib>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/version.h"
#include "viewer/session/view_link.h"

namespace attnscope {
namespace {

/// The program that leads to another machine.
std::string ssh_program() {
  const char* const named = std::getenv("ATTNSCOPE_SSH");
  return named == nullptr || *named == '\0' ? "ssh" : named;
}

std::string meaning_of(int code, const RemotePlace& place, const std::string& program) {
  if (code == 127) {
    return fmt::format(
        "{} has no program {}: `ssh {}{} pip install attnscope=={}` brings it, or name it with "
        "--remote-program PATH",
        place.login(), one_line(program),
        place.port == 0 ? std::string() : fmt::format("-p {} ", place.port), place.login(),
        version());
  }
  if (code == 126) {
    return fmt::format("{} cannot start {}: name the program with --remote-program PATH",
                       place.login(), one_line(program));
  }
  if (code == 255) return "ssh did not come to " + place.login();
  return "";
}

class LinkedTiles : public RemoteTileSource {
 public:
  LinkedTiles(std::unique_ptr<RemoteLink> link, const std::string& name, int64_t memory,
              std::function<void()> wake)
      : RemoteTileSource(name, link->hello(), memory, std::move(wake)), link_(std::move(link)) {
    link_->serve(*this);
  }
  /// The link's thread ends before what it fills does.
  ~LinkedTiles() override { link_.reset(); }

 private:
  std::unique_ptr<RemoteLink> link_;
};

}  // namespace

std::string serve_words(const RemotePlace& place, const std::string& second_path,
                        const FactOverrides& facts, const WayThere& way) {
  // No word of a path is taken for an option.
  const auto path_word = [](const std::string& path) {
    return shell_quoted(path.front() == '-' ? "./" + path : path);
  };
  std::string line = "exec " + shell_quoted(way.program) + " serve --stdio";
  if (!way.run.memory.empty()) line += " --memory " + shell_quoted(way.run.memory);
  if (way.run.threads > 0) line += fmt::format(" --threads {}", way.run.threads);
  if (way.run.backend != "auto") line += " --backend " + shell_quoted(way.run.backend);
  if (!way.run.vram.empty()) line += " --vram " + shell_quoted(way.run.vram);
  if (way.run.tf32) line += " --tf32";
  if (!way.cache.empty()) line += " --cache " + shell_quoted(way.cache);
  if (way.follow) line += " --follow";
  line += fact_words(facts) + " " + path_word(place.path);
  if (!second_path.empty()) line += " " + path_word(second_path);
  return line;
}

std::unique_ptr<RemoteLink> open_link(const std::string& name, const std::string& second,
                                      const FactOverrides& facts, const WayThere& way,
                                      const std::stop_token& stop) {
  const RemotePlace place = parse_remote_place(name);
  std::string second_path;
  if (!second.empty()) {
    const bool there = is_remote_name(second);
    const RemotePlace other = there ? parse_remote_place(second) : RemotePlace{};
    if (!other.same_machine(place)) {
      throw usage_error("what is compared lies on one machine: " + one_line(name) + " and " +
                        one_line(second) + " do not");
    }
    second_path = other.path;
  }
  const std::string line = serve_words(place, second_path, facts, way);
  RemoteProgram program;
  program.name = one_line(name);
  program.words = [place, line](bool again) {
    std::vector<std::string> words{ssh_program(), "-T"};
    // Nobody sees a question behind the window.
    if (again) words.insert(words.end(), {"-o", "BatchMode=yes"});
    if (place.port != 0) words.insert(words.end(), {"-p", std::to_string(place.port)});
    words.insert(words.end(), {"--", place.login(), line});
    return words;
  };
  // A model may take its time before its first call.
  if (way.follow) program.silent_seconds = std::numeric_limits<double>::infinity();
  program.meaning = [place, program = way.program](int code) {
    return meaning_of(code, place, program);
  };
  return std::make_unique<RemoteLink>(std::move(program), stop);
}

std::unique_ptr<RemoteTileSource> linked_tiles(std::unique_ptr<RemoteLink> link,
                                               const std::string& name, int64_t memory,
                                               std::function<void()> wake) {
  return std::make_unique<LinkedTiles>(std::move(link), name, memory, std::move(wake));
}

}  // namespace attnscope
