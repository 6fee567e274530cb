#include <algorithm>

#include "tests/support/catch.h"
#include "viewer/script/palette_search.h"
#include "viewer/view/maps/map_source.h"

using namespace attnscope;

namespace {

/// Layers 3 and 12 of two heads: four words of text before two frames of 2x3.
std::vector<MapSource> two_layers() {
  std::vector<MapSource> calls;
  for (const int64_t layer : {3, 12}) {
    MapSource call;
    call.name = "call";
    call.layer = layer;
    call.branches = {"cond"};
    call.batch = {0};
    call.heads = {0, 1};
    call.queries = call.keys = TokenGrid::video(16, {2, 2, 3}, 4, TextPlace::start);
    call.tokens = {{"a", "red", "circle", "[PAD]"}};
    calls.push_back(call);
  }
  return calls;
}

struct Found {
  std::vector<MapSource> calls = two_layers();
  HeadPicker picker{calls};
  PaletteContext context{&picker, {0, 0, 0}, TokenNames::of(calls[0], 0, false)};

  std::vector<PaletteItem> operator()(std::string_view text) const {
    return palette_items(text, context);
  }
  /// The first item that the text finds.
  PaletteItem first(std::string_view text) const {
    const auto items = (*this)(text);
    REQUIRE_FALSE(items.empty());
    return items.front();
  }
};

}  // namespace

TEST_CASE("an empty palette lists all commands and script words, and no other") {
  const Found found;
  const auto items = found("");
  const auto has_command = [&](CommandId id) {
    return std::any_of(items.begin(), items.end(),
                       [&](const PaletteItem& item) { return item.command == id; });
  };
  for (const ViewCommand& command : commands()) {
    INFO(command.name);
    // Commands for a held key or for the mouse's place, and the palette's own, are not in its list.
    const bool by_hand = command.id == CommandId::palette || command.id == CommandId::hold_other ||
                         command.id == CommandId::copy_entry || command.id == CommandId::pin ||
                         command.id == CommandId::go_to_pin;
    CHECK(has_command(command.id) == (command.here && !by_hand));
  }
  CHECK(std::any_of(items.begin(), items.end(),
                    [](const PaletteItem& item) { return item.fill == "colormap "; }));
  CHECK(std::any_of(items.begin(), items.end(),
                    [](const PaletteItem& item) { return item.line == "fit"; }));
}

TEST_CASE("a place, a head and a word of the prompt are found") {
  const Found found;
  CHECK(found.first("1,0,2").line == "query 1 0 2");
  CHECK(found.first("(1, 0, 2)").line == "query 1 0 2");
  CHECK(found.first("1 0 2").line == "query 1 0 2");
  // A place that is not there says so, and does nothing.
  CHECK(found.first("7,0,2").line.empty());
  CHECK_FALSE(found.first("7,0,2").command);
  CHECK(found.first("7,0,2").title.find("7 0 2") != std::string::npos);

  for (const char* text : {"l12 h1", "layer 12 head 1", "12.1", "L12 H1"}) {
    INFO(text);
    CHECK(found.first(text).line == "head 12 1");
  }
  CHECK(found.first("l7 h0").line.empty());
  CHECK(found.first("l7 h0").title.find("3, 12") != std::string::npos);

  const auto words = found("circ");
  CHECK(std::any_of(words.begin(), words.end(), [](const PaletteItem& item) {
    return item.line == "query text 2" && item.title.find("circle") != std::string::npos;
  }));
}

TEST_CASE("a line of a script is run, and one that is wrong says what it lacks") {
  const Found found;
  CHECK(found.first("colormap magma").line == "colormap magma");
  const PaletteItem wrong = found.first("pool most");
  CHECK(wrong.line.empty());
  CHECK(wrong.fill == "pool most");
  CHECK(wrong.detail.find("max, mean") != std::string::npos);
}

TEST_CASE("commands are found by any of their words, those that begin with them first") {
  const Found found;
  CHECK(found.first("next head").command == CommandId::next_head);
  CHECK(found.first("HISTOGRAM").command == CommandId::toggle_histogram);
  CHECK(found.first("fit").line == "fit");
  CHECK(found("no such thing at all").empty());
  // Nothing is open: no heads, places and words.
  CHECK(palette_items("1,0,2", {}).empty());
  CHECK(palette_items("l12 h1", {}).empty());
}
