#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/pictures/film/filmstrip.h"
#include "io/results/volume_files.h"
#include "io/results/volume_hdf5.h"
#include "io/results/volume_output.h"
#include "io/tensors/npy.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/png_picture.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Two heads over a 3×4×5 grid with three text tokens; head 1 has masked (zero) weights.
QueryVolumes sample_volumes() {
  QueryVolumes volumes;
  volumes.grid = {3, 4, 5};
  volumes.token_lists = {{"[CLS]", "a \"dog\"", "x,y"}};
  volumes.model = "tiny";
  volumes.capture = "dump";
  volumes.domain = "all";
  volumes.query_text = "query 1,2,3";
  for (int64_t head = 0; head < 2; ++head) {
    QueryVolume volume;
    volume.step = 10;
    volume.layer = 3;
    volume.head = head;
    volume.branch = "cond";
    volume.kind = "joint";
    volume.label = "step 10 layer 3 head " + std::to_string(head);
    for (int i = 0; i < 60; ++i) {
      volume.video.push_back(head == 1 && i % 7 == 0 ? 0.0f
                                                     : std::exp2(-0.1f * static_cast<float>(i)));
    }
    volume.text = {0.5f, 0.25f, 0.125f};
    if (head == 0) volume.query = std::array<int64_t, 3>{1, 2, 3};
    volumes.volumes.push_back(volume);
  }
  return volumes;
}

/// The lines of a file, each of which ends with \r\n, without that.
std::vector<std::string> csv_lines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    REQUIRE(line.ends_with('\r'));
    line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

bool same(Rgb a, Rgb b) { return a == b; }

}  // namespace

TEST_CASE("volumes as .npy") {
  const TemporaryFolder folder;
  const QueryVolumes volumes = sample_volumes();
  write_volumes_npy(volumes, folder / "v.npy", false);
  const std::string bytes = read_bytes(folder / "v.npy");
  REQUIRE(bytes.size() == 128 + 2 * 60 * 4);
  CHECK(bytes.substr(1, 5) == "NUMPY");
  CHECK(bytes[127] == '\n');
  const auto tensor = open_npy(folder / "v.npy")->tensor("");
  CHECK(tensor->dtype() == DType::f32);
  const auto shape = tensor->shape();
  REQUIRE(std::vector<int64_t>(shape.begin(), shape.end()) == std::vector<int64_t>{2, 3, 4, 5});
  std::vector<float> values(120);
  const std::vector<int64_t> begin(4, 0);
  tensor->read(begin, shape, reinterpret_cast<std::byte*>(values.data()));
  CHECK(std::equal(values.begin(), values.begin() + 60, volumes.volumes[0].video.begin()));
  CHECK(std::equal(values.begin() + 60, values.end(), volumes.volumes[1].video.begin()));
}

TEST_CASE("volumes as .csv") {
  const TemporaryFolder folder;
  write_volumes_csv(sample_volumes(), folder / "v.csv", false);
  const std::vector<std::string> lines = csv_lines(folder / "v.csv");
  REQUIRE(lines.size() == 1 + 2 * 63);
  CHECK(lines[0] == "step,layer,branch,kind,batch,head,segment,index,t,y,x,token,weight");
  CHECK(lines[1] == "10,3,cond,joint,0,0,text,0,,,,[CLS],0.5");
  CHECK(lines[2] == "10,3,cond,joint,0,0,text,1,,,,\"a \"\"dog\"\"\",0.25");
  CHECK(lines[3] == "10,3,cond,joint,0,0,text,2,,,,\"x,y\",0.125");
  // Place 33 of the video is (1, 2, 3); its weight survives the text.
  const std::string head = "10,3,cond,joint,0,0,video,33,1,2,3,,";
  REQUIRE(lines[4 + 33].substr(0, head.size()) == head);
  CHECK(std::stof(lines[4 + 33].substr(head.size())) == std::exp2(-3.3f));
  CHECK(lines[1 + 63 + 3] == "10,3,cond,joint,0,1,video,0,0,0,0,,0");
}

TEST_CASE("what names a volume's head in .csv") {
  const TemporaryFolder folder;
  QueryVolumes volumes = sample_volumes();
  // A block outside the main stack, of a call whose branch goes by the number of its forward; and
  // the mean over heads and layers.
  volumes.volumes[0].layer = kNoLayer;
  volumes.volumes[0].branch = "f1";
  volumes.volumes[0].place = {"refiner.0", "attn", kNoChunk};
  volumes.volumes[0].place.forward = {5, 1, 0};
  volumes.volumes[1].layer = volumes.volumes[1].head = -1;
  volumes.volumes[1].averaged = 8;
  write_volumes_csv(volumes, folder / "v.csv", false);
  const std::vector<std::string> lines = csv_lines(folder / "v.csv");
  CHECK(lines[0] ==
        "step,layer,branch,kind,batch,head,block,slot,forward,of_step,segment,index,t,y,x,token,"
        "weight");
  CHECK(lines[1] == "10,,f1,joint,0,0,refiner.0,attn,5,1,text,0,,,,[CLS],0.5");
  CHECK(lines[1 + 63] == "10,-1,cond,joint,0,-1,,,,,text,0,,,,[CLS],0.5");
}

TEST_CASE("volumes as HDF5, with axes and facts") {
  const TemporaryFolder folder;
  QueryVolumes volumes = sample_volumes();
  const std::string out = folder / "v.h5";
  write_volumes_hdf5(volumes, out, false);
  const DatasetValues video = read_dataset(out, "/volume");
  REQUIRE(video.shape == std::vector<int64_t>{2, 3, 4, 5});
  for (size_t i = 0; i < 60; ++i) {
    CHECK(video.values[i] == volumes.volumes[0].video[i]);
    CHECK(video.values[60 + i] == volumes.volumes[1].video[i]);
  }
  CHECK(read_dataset(out, "/text").shape == std::vector<int64_t>{2, 3});
  CHECK(read_dataset(out, "/text").values[4] == 0.25);
  CHECK(read_dataset(out, "/head").values == std::vector<double>{0, 1});
  CHECK(read_dataset(out, "/step").values == std::vector<double>{10, 10});
  CHECK(read_dataset(out, "/query_x").values == std::vector<double>{3, -1});
  CHECK(read_dataset(out, "/y").values == std::vector<double>{0, 1, 2, 3});
  const auto members = group_members(out, "/");
  for (const char* name : {"branch", "kind", "label", "layer", "batch", "text_tokens", "item"}) {
    INFO(name);
    CHECK(std::count(members.begin(), members.end(), name) == 1);
  }
  // Without a grid there is the text alone.
  volumes.grid = {0, 0, 0};
  for (QueryVolume& volume : volumes.volumes) {
    volume.video.clear();
    volume.query.reset();
  }
  write_volumes_hdf5(volumes, folder / "text.h5", false);
  const auto text_members = group_members(folder / "text.h5", "/");
  CHECK(std::count(text_members.begin(), text_members.end(), "volume") == 0);
  CHECK(std::count(text_members.begin(), text_members.end(), "text") == 1);
}

TEST_CASE("a filmstrip has each cell in its colour and the query outlined") {
  const TemporaryFolder folder;
  const QueryVolumes volumes = sample_volumes();
  write_volumes(VolumeFormat::png, volumes, {}, folder / "v.png", false);
  const Picture picture = read_png(folder / "v.png");
  const Filmstrip film(volumes);
  REQUIRE(picture.width == static_cast<uint32_t>(film.width()));
  REQUIRE(picture.height == static_cast<uint32_t>(film.height()));
  for (int i = 0; i < 2; ++i) {
    const QueryVolume& volume = volumes.volumes[static_cast<size_t>(i)];
    const ColourScale scale = ColourScale::fit({}, volume.video);
    const int top = film.header_height() + i * film.strip_height();
    for (int n = 0; n < 60; ++n) {
      const PixelRect cell = film.cell(n / 20, n / 5 % 4, n % 5);
      INFO("volume " << i << " cell " << n);
      // The middle: neighbours' outlines may touch the rims.
      CHECK(same(picture.at(cell.x + cell.width / 2, top + cell.y + cell.height / 2),
                 scale.colour(volume.video[static_cast<size_t>(n)])));
    }
    const PixelRect query = film.cell(1, 2, 3);
    const Rgb rim = picture.at(query.x - 1, top + query.y + query.height / 2);
    CHECK(same(rim, Rgb{0x4a, 0xa8, 0xff}) == volume.query.has_value());
  }
  // Frame numbers, labels and the bar put something beside the frames.
  int lit = 0;
  for (int y = 0; y < film.header_height(); ++y) {
    for (uint32_t x = 0; x < picture.width; ++x) {
      lit += !same(picture.at(static_cast<int>(x), y), Rgb{0x10, 0x12, 0x14});
    }
  }
  CHECK(lit > 200);
}

TEST_CASE("frames are wrapped into lines that fit, and never overlap") {
  for (const std::array<int64_t, 3>& grid :
       {std::array<int64_t, 3>{13, 30, 45}, {33, 45, 80}, {1, 1, 1}, {2, 300, 500}, {81, 12, 12}}) {
    QueryVolumes volumes = sample_volumes();
    volumes.grid = grid;
    volumes.volumes.clear();
    const Filmstrip film(volumes);
    INFO(grid[0] << "x" << grid[1] << "x" << grid[2]);
    CHECK(film.width() < 2400);
    std::vector<PixelRect> frames;
    for (int64_t t = 0; t < grid[0]; ++t) {
      const PixelRect first = film.cell(t, 0, 0);
      const PixelRect last = film.cell(t, grid[1] - 1, grid[2] - 1);
      const PixelRect frame{first.x, first.y, last.x + last.width - first.x,
                            last.y + last.height - first.y};
      CHECK(frame.x + frame.width < film.width());
      CHECK(frame.y + frame.height <= film.strip_height());
      for (const PixelRect& other : frames) {
        const bool apart = frame.x >= other.x + other.width || other.x >= frame.x + frame.width ||
                           frame.y >= other.y + other.height || other.y >= frame.y + frame.height;
        CHECK(apart);
      }
      frames.push_back(frame);
    }
  }
}

TEST_CASE("volumes that do not fit, or cannot be written, leave nothing") {
  const TemporaryFolder folder;
  const std::vector<VolumeFormat> formats{VolumeFormat::npy, VolumeFormat::csv, VolumeFormat::hdf5,
                                          VolumeFormat::png, VolumeFormat::gif};
  const auto code_of = [](VolumeFormat format, const QueryVolumes& volumes,
                          const std::string& path) {
    try {
      write_volumes(format, volumes, {}, path, false);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::interrupted;
  };
  for (const VolumeFormat format : formats) {
    INFO("format " << static_cast<int>(format));
    QueryVolumes short_video = sample_volumes();
    short_video.volumes[1].video.pop_back();
    CHECK(code_of(format, short_video, folder / "v") == ErrorCode::usage);
    QueryVolumes short_text = sample_volumes();
    short_text.volumes[1].text.pop_back();
    CHECK(code_of(format, short_text, folder / "v") == ErrorCode::usage);
    QueryVolumes outside = sample_volumes();
    (*outside.volumes[0].query)[2] = 5;
    CHECK(code_of(format, outside, folder / "v") == ErrorCode::usage);
    QueryVolumes none = sample_volumes();
    none.volumes.clear();
    CHECK(code_of(format, none, folder / "v") == ErrorCode::usage);
    CHECK(code_of(format, sample_volumes(), folder / "missing/v") == ErrorCode::file);
    CHECK(std::filesystem::is_empty(folder.path()));
    // Somebody's unfinished file is not touched.
    std::ofstream(folder / "v.part") << "precious";
    CHECK(code_of(format, sample_volumes(), folder / "v") == ErrorCode::file);
    CHECK(read_bytes(folder / "v.part") == "precious");
    std::filesystem::remove(folder / "v.part");
  }
  QueryVolumes many = sample_volumes();
  many.volumes.resize(20000, many.volumes.front());
  CHECK(code_of(VolumeFormat::png, many, folder / "v") == ErrorCode::usage);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a name's extension is one of the formats that are allowed") {
  constexpr VolumeFormat kAllowed[] = {VolumeFormat::npy, VolumeFormat::hdf5, VolumeFormat::csv};
  CHECK(volume_format_of("a.b/v.npy", kAllowed) == VolumeFormat::npy);
  CHECK(volume_format_of("v.h5", kAllowed) == VolumeFormat::hdf5);
  CHECK(volume_format_of("v.npy.csv", kAllowed) == VolumeFormat::csv);
  for (const auto& [name, extension] : {std::pair<std::string, std::string>{"v.gif", ".gif"},
                                        {"v.NPY", ".NPY"},
                                        {"folder.npy/v", ""}}) {
    INFO(name);
    try {
      volume_format_of(name, kAllowed);
      FAIL("taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK(error.what() ==
            "-o " + name + ": the name must end in .npy, .h5 or .csv (got \"" + extension + "\")");
    }
  }
}
