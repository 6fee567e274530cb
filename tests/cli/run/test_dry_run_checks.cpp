// A dry run checks what the run checks: whatever keeps the run from beginning keeps the dry run
// from printing its plan, in the same words. Neither leaves anything on the disk.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/files/file_lock.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

/// A command that writes OUT, without -o. "DUMP", "PART0" and "PART1" stand for what it reads.
struct Writer {
  Arguments words;
  std::string out;
  bool knows_size = false;    ///< asks for room on the disk before it begins
  bool has_memory = true;     ///< takes --memory
  bool has_selection = true;  ///< takes --layers
};

const std::vector<Writer> kWriters{
    {{"export", "DUMP", "--layers", "0"}, "maps.h5", true},
    {{"export", "DUMP", "--layers", "0", "--block", "16", "--pyramid"}, "maps.h5", true},
    {{"export", "DUMP", "--layers", "0", "--compress", "gzip"}, "maps.h5"},
    {{"export", "DUMP", "--layers", "0", "--query", "1,2,3"}, "rows.h5", true},
    {{"export", "DUMP", "--layers", "0", "--threshold", "0.1"}, "some.h5"},
    {{"stats", "DUMP", "--layers", "0"}, "heads.json"},
    {{"stats", "DUMP", "--layers", "0"}, "heads.h5"},
    {{"mask", "DUMP", "--layers", "0", "--mask", "topk:keep=0.5"}, "kept.json"},
    {{"query", "DUMP", "--layers", "0", "--query", "1,2,3"}, "volume.npy"},
    {{"query", "DUMP", "--layers", "0", "--query", "1,2,3", "--reverse"}, "volume.npy"},
    {{"rollout", "DUMP", "--query", "1,2,3"}, "volume.npy"},
    {{"diff", "DUMP", "--layers", "0", "--heads", "0", "--b-head", "1"}, "pairs.json"},
    {{"diff", "DUMP", "--layers", "0", "--heads", "0", "--b-head", "1", "--product", "pooled"},
     "pairs.h5"},
    {{"render", "DUMP", "--layers", "0", "--picture", "mosaic"}, "picture.png"},
    {{"render", "DUMP", "--layers", "0", "--picture", "filmstrip", "--query", "1,2,3"}, "film.png"},
    {{"plot", "DUMP", "--layers", "0", "--what", "entropy"}, "plot.png"},
    {{"plot", "PART0.json", "--what", "entropy"}, "plot.png", false, false, false},
    {{"figure", "DUMP", "--layers", "0", "--heads", "0"}, "page.html"},
    {{"report", "DUMP", "--layers", "0"}, "page.html"},
    {{"report", "DUMP", "DUMP", "--layers", "0"}, "page.html"},
    {{"report", "PART0.json"}, "page.html", false, false, false},
    {{"report", "PART0.h5"}, "page.html", false, false, false},
    {{"convert", "DUMP", "--layers", "0"}, "less", true, false},
    {{"convert", "DUMP", "--layers", "0"}, "less.safetensors", true, false},
    {{"synth", "--grid", "4x4x4"}, "made", true, false, false},
    {{"synth", "--grid", "4x4x4"}, "made.safetensors", true, false, false},
    {{"merge", "PART0.h5", "PART1.h5", "--copy"}, "whole.h5", true, false, false},
    {{"merge", "PART0.json", "PART1.json"}, "whole.json", false, false, false},
};

/// Everything below a folder; of files their size and when they were written.
std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> files_below(
    const fs::path& folder) {
  std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    auto& file = files[entry.path().string()];
    if (entry.is_regular_file()) file = {entry.file_size(), entry.last_write_time()};
  }
  return files;
}

/// A capture and parts of outputs, and beside them the folder of outputs.
class Workplace {
 public:
  Workplace() {
    fs::copy(sample("moving-shapes"), folder_ / "dump", fs::copy_options::recursive);
    fs::create_directory(folder_ / "out");
    for (const std::string ending : {".h5", ".json"}) {
      for (const std::string part : {"0", "1"}) {
        const std::string out = folder_ / ("part-{shard}" + ending), shard = part + "/2";
        Arguments words{ending == ".h5" ? "export" : "stats", folder_ / "dump", "--layers", "0,1"};
        words.insert(words.end(), {"--heads", "0", "-o", out, "--shard", shard, "--quiet"});
        REQUIRE(run_attnscope(words).exit_code == 0);
      }
    }
  }

  std::string out(const std::string& name) const { return folder_ / ("out/" + name); }
  std::string dump() const { return folder_ / "dump"; }
  void clear() const {
    fs::remove_all(folder_ / "out");
    fs::create_directory(folder_ / "out");
  }

  ProgramResult run(const Writer& writer, const std::string& out, const Arguments& more,
                    const ProgramSettings& settings = {}) const {
    Arguments words = writer.words;
    for (std::string& word : words) {
      if (word == "DUMP") word = dump();
      if (word.starts_with("PART")) {
        word = folder_ / ("part-" + word.substr(4, 1) + "-of-2" + word.substr(5));
      }
    }
    words.insert(words.end(), {"-o", out, "--quiet"});
    words.insert(words.end(), more.begin(), more.end());
    ProgramSettings with_cache = settings;
    with_cache.environment.push_back("XDG_CACHE_HOME=" + (folder_ / "out"));
    return run_attnscope(words, with_cache);
  }

  /// The run and its dry run end alike, and leave all as it was. Returns what they say.
  std::string refused_alike(const Writer& writer, const std::string& out, const Arguments& more,
                            const ProgramSettings& settings = {}) const {
    const auto before = files_below(folder_.path());
    Arguments dry = more;
    dry.emplace_back("--dry-run");
    const ProgramResult planned = run(writer, out, dry, settings);
    INFO("dry run: " << planned.exit_code << " " << planned.out << planned.err);
    CHECK(files_below(folder_.path()) == before);
    const ProgramResult real = run(writer, out, more, settings);
    INFO("run: " << real.exit_code << " " << real.err);
    CHECK(real.exit_code != 0);
    CHECK(files_below(folder_.path()) == before);
    CHECK(planned.exit_code == real.exit_code);
    CHECK(planned.err == real.err);
    CHECK(planned.out.empty());
    return real.err;
  }

 private:
  TemporaryFolder folder_;
};

std::string text_of(const Writer& writer) {
  std::string text;
  for (const std::string& word : writer.words) text += word + " ";
  return text + "-o " + writer.out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write_text(const std::string& file) { std::ofstream(file) << "something\n"; }

}  // namespace

TEST_CASE("a dry run leaves nothing on the disk") {
  const Workplace place;
  for (const Writer& writer : kWriters) {
    INFO(text_of(writer));
    const auto before = files_below(fs::path(place.dump()).parent_path());
    const ProgramResult result = place.run(writer, place.out(writer.out), {"--dry-run"});
    INFO(result.err);
    const bool is_absent =
        writer.words.front() == "figure" && contains(result.err, "without the page's engine");
    CHECK((result.exit_code == 0 || is_absent));
    CHECK(files_below(fs::path(place.dump()).parent_path()) == before);
  }
}

TEST_CASE("an output that cannot be written is told by the dry run as by the run") {
  const Workplace place;
  for (const Writer& writer : kWriters) {
    INFO(text_of(writer));
    const std::string out = place.out(writer.out);
    const bool is_figure = writer.words.front() == "figure";
    {
      INFO("in no folder");
      const std::string said = place.refused_alike(writer, place.out("nowhere/" + writer.out), {});
      CHECK((is_figure || contains(said, "nowhere")));
    }
    write_text(place.out("file"));
    {
      INFO("in a file");
      place.refused_alike(writer, place.out("file/" + writer.out), {});
    }
    place.clear();
    write_text(out);
    {
      INFO("exists");
      const std::string said = place.refused_alike(writer, out, {});
      CHECK((is_figure || contains(said, "already exists")));
    }
    place.clear();
    write_text(out + ".part");
    {
      INFO("an interrupted run is left");
      place.refused_alike(writer, out, {});
    }
    place.clear();
    fs::create_directory(out + ".part");
    write_text(out + ".part/somebody's");
    {
      INFO("a folder has the name of what a run writes");
      place.refused_alike(writer, out, {"--force"});
    }
    place.clear();
    {
      INFO("another run writes it");
      const FileLock lock(out + ".lock", out);
      const std::string said = place.refused_alike(writer, out, {});
      CHECK((is_figure || contains(said, "is being written by another run")));
    }
    place.clear();
    {
      INFO("ending");
      place.refused_alike(writer, place.out("x.tiff"), {});
    }
  }
}

TEST_CASE("what keeps a run from beginning keeps its dry run") {
  const Workplace place;
  for (const Writer& writer : kWriters) {
    INFO(text_of(writer));
    const std::string out = place.out(writer.out);
    if (writer.knows_size) {
      INFO("no room for the file");
      const std::string said = place.refused_alike(writer, out, {}, {.max_file_bytes = 100});
      CHECK(contains(said, "may not write files this large"));
    }
    if (writer.has_memory) {
      INFO("too little memory");
      place.refused_alike(writer, out, {"--memory", "512KiB"});
      INFO("no such backend");
      place.refused_alike(writer, out, {"--backend", "abacus"});
    }
    if (writer.has_selection) {
      INFO("nothing is selected");
      place.refused_alike(writer, out, {"--heads", "99"});
      INFO("an input");
      place.refused_alike(writer, place.dump() + "/" + writer.out, {"--force"});
    }
    INFO("no such option");
    place.refused_alike(writer, out, {"--no-such-option"});
  }
}

TEST_CASE("a mask that cannot be saved is told by the dry run") {
  const Workplace place;
  const Writer writer{{"mask", "DUMP", "--layers", "0", "--mask", "topk:keep=0.5", "--save",
                       place.out("nowhere/blocks.npy")},
                      "kept.json"};
  CHECK(contains(place.refused_alike(writer, place.out(writer.out), {}), "nowhere"));
}

TEST_CASE("a dry run with --resume looks at what it would go on with") {
  const Workplace place;
  const std::vector<std::pair<Writer, Arguments>> cases{
      {{{"export", "DUMP", "--layers", "0"}, "maps.h5"}, {"--dtype", "f32"}},
      {{{"export", "DUMP", "--layers", "0", "--compress", "gzip"}, "maps.h5"}, {"--dtype", "f32"}},
      {{{"export", "DUMP", "--layers", "0", "--block", "16"}, "maps.h5"}, {"--pyramid"}},
      {{{"stats", "DUMP", "--layers", "0"}, "heads.json"}, {"--sample", "16"}},
      {{{"stats", "DUMP", "--layers", "0"}, "heads.h5"}, {"--sample", "16"}},
      {{{"mask", "DUMP", "--layers", "0", "--mask", "topk:keep=0.5"}, "kept.json"}, {"--exact"}},
      {{{"merge", "PART0.h5", "PART1.h5", "--copy"}, "whole.h5"}, {}},
  };
  for (const auto& [writer, other] : cases) {
    INFO(text_of(writer));
    place.clear();
    const std::string out = place.out(writer.out);
    const bool is_merge = writer.words.front() == "merge";
    if (is_merge) {
      REQUIRE(place.run({{"export", "DUMP", "--layers", "0"}, ""}, out, {}).exit_code == 0);
    } else {
      REQUIRE(place.run(writer, out, other).exit_code == 0);
    }
    const std::string said = place.refused_alike(writer, out, {"--resume"});
    CHECK((contains(said, "is another export") || contains(said, "is of another run")));
    // What is there of this run is no fault.
    fs::remove_all(out);
    fs::remove_all(out + ".d");
    REQUIRE(place.run(writer, out, {}).exit_code == 0);
    const auto before = files_below(place.out(""));
    const ProgramResult planned = place.run(writer, out, {"--resume", "--dry-run"});
    INFO(planned.err);
    CHECK(planned.exit_code == 0);
    CHECK(files_below(place.out("")) == before);
    CHECK(place.run(writer, out, {"--resume"}).exit_code == 0);
  }
}

TEST_CASE("a dry run with --resume looks at what an interrupted run left") {
  const Workplace place;
  for (const Writer& writer :
       {Writer{{"export", "DUMP", "--layers", "0"}, "maps.h5"},
        Writer{{"export", "DUMP", "--layers", "0", "--block", "16"}, "maps.h5"},
        Writer{{"mask", "DUMP", "--layers", "0", "--mask", "topk:keep=0.5"}, "maps.json"},
        Writer{{"stats", "DUMP", "--layers", "0"}, "maps.json"}}) {
    INFO(text_of(writer));
    place.clear();
    const std::string out = place.out(writer.out);
    // As a run of another command, or of another version, leaves them.
    const bool is_stats = writer.words.front() == "stats";
    std::ofstream(out + ".part") << R"({"format":"attnscope-)" << (is_stats ? "mask" : "stats")
                                 << "-part/2\",\"capture_hash\":\"0\"}\n";
    place.refused_alike(writer, out, {"--resume"});
  }
}
