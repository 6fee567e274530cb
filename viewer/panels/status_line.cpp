#include "viewer/panels/status_line.h"

#include <fmt/core.h>

#include <cmath>

#include "core/base/number_words.h"
#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

/// Parts of a line with a thin gap between them.
struct LineWriter {
  const Ui& ui;
  float x, y, right;

  void word(ImFont* font, ImU32 colour, const std::string& text) {
    if (x >= right) return;
    x += put_fitting(ui, font, x, y + (ui.px(kStatusHeight) - font->FontSize) / 2, right - x,
                     colour, text);
  }
  void gap() { word(ui.fonts.secondary, ui.theme.secondary, "   "); }
};

/// "0.5 of 2 GiB"; of a window that knows no limit "0.5 GiB", or of a page "33 MiB".
std::string memory_text(const Scene& scene) {
  const double taken = static_cast<double>(scene.memory_bytes) / 0x1p30;
  const std::string text = fmt::format("{:.1f}", taken);
  if (scene.memory_limit <= 0 && taken < 0.1) return fmt::format("{:.0f} MiB", 1024 * taken);
  if (scene.memory_limit <= 0) return text + " GiB";
  return fmt::format("{} of {:.3g} GiB", text, static_cast<double>(scene.memory_limit) / 0x1p30);
}

std::string work_text(const Scene& scene) {
  const TileSourceStatus& s = scene.source;
  std::string text;
  if (s.busy && s.exact_progress > 0 && s.exact_progress < 1) {
    text = fmt::format("exact pass {:.0f} %", 100 * s.exact_progress);
    if (s.exact_seconds_left >= 0) text += fmt::format(", {:.0f} s left", s.exact_seconds_left);
    text += "   ";
  }
  text += fmt::format("queue {}   ", s.queue);
  if (scene.memory_bytes > 0) text += "memory " + memory_text(scene);
  return s.link.empty() ? text : text + "   " + s.link;
}

/// The parts of the memory, beside the mouse.
std::string memory_words(const Scene& scene) {
  std::string text =
      fmt::format("{:.0f} MiB of tiles, rows and sums, {:.0f} MiB of textures",
                  static_cast<double>(scene.source.host_bytes) / 0x1p20, scene.texture_mib);
  if (scene.memory_limit > 0) {
    text = "the program's resident size, of what it may keep and compute from (--memory)\n" + text;
  }
  return text;
}

/// What follows stays at its place while the numbers change.
std::string entry_text(double value) { return fmt::format("{:<10}", number_words(value, 4)); }

/// Writes the number of the entry on side B, and A's less B's.
void write_other(LineWriter& line, const Scene& scene, const ProbedEntry& a) {
  if (!scene.readout->other) return;
  const ProbedEntry& b = *scene.readout->other;
  const Fonts& fonts = line.ui.fonts;
  const bool logits = scene.state.product == ViewProduct::logits;
  const double of_b = logits ? b.logit : b.weight;
  if (!std::isfinite(of_b)) return;
  line.word(fonts.secondary, line.ui.theme.side_b, logits ? "B logit " : "B weight ");
  line.word(fonts.mono, line.ui.theme.text, entry_text(of_b));
  const double difference = (logits ? a.logit : a.weight) - of_b;
  if (std::isfinite(difference)) {
    line.word(fonts.secondary, line.ui.theme.secondary, " A \u2212 B ");
    line.word(fonts.mono, line.ui.theme.text, entry_text(difference));
  }
  line.gap();
}

void write_readout(LineWriter& line, const Scene& scene, const std::string& resolution,
                   const std::string& tracks) {
  const Fonts& fonts = line.ui.fonts;
  const Theme& theme = line.ui.theme;
  if (!scene.readout && !tracks.empty()) {
    line.word(fonts.secondary, theme.text, tracks);
    return;
  }
  if (!scene.readout) {
    line.word(fonts.secondary, theme.secondary,
              (scene.other.shown ? "B: " + scene.other.picker.title(scene.state.head)
                                 : scene.picker.title(scene.state.head)) +
                  "   point at the map to read it");
    return;
  }
  const PointReadout& r = *scene.readout;
  line.word(fonts.secondary, theme.query, "q " + token_text(scene.queries, r.point.query));
  line.word(fonts.secondary, theme.secondary, "  \u2192  ");
  line.word(fonts.secondary, theme.key, "k " + token_text(scene.keys, r.point.key));
  line.gap();
  if (r.entry) {
    const auto value = [&](const char* name, const std::string& number) {
      line.word(fonts.secondary, theme.secondary, name);
      line.word(fonts.mono, theme.text, number);
      line.gap();
    };
    const ProbedEntry& e = *r.entry;
    if (e.block > 1 && !std::isnan(e.weight)) {
      value(fmt::format("of {0}\u00d7{0}: max ", e.block).c_str(), entry_text(e.weight));
      value("mean ", entry_text(e.mean));
    } else if (!std::isnan(e.weight)) {
      value(r.on_other ? "B weight " : "weight ", entry_text(e.weight));
    }
    if (std::isinf(e.logit) && e.logit < 0) {
      value("", scene.call.is_evicted(r.point.query, r.point.key) ? "evicted" : "masked");
    } else if (!std::isnan(e.logit)) {
      value(r.on_other ? "B logit " : "logit ", fmt::format("{:<8.3f}", e.logit));
    }
    if (std::isnan(e.weight) && std::isnan(e.logit)) value("", "not in the file");
    if (r.rank) value("rank ", fmt::format("{}", *r.rank));
    write_other(line, scene, e);
  } else {
    line.word(fonts.secondary, theme.secondary, "\u2026");
    line.gap();
  }
  if (!tracks.empty()) {
    line.word(fonts.secondary, theme.text, tracks);
    line.gap();
  }
  line.word(fonts.secondary, theme.secondary, resolution);
}

/// Opens the messages on a click: they have this text uncut, and those that were told before.
void offer_messages(const ScreenRect& rect, PanelRequests& requests) {
  ImGui::SetCursorScreenPos({rect.x0, rect.y0});
  if (ImGui::InvisibleButton("told", {rect.width(), rect.height()})) {
    requests.command = CommandId::messages;
  }
  if (ImGui::IsItemHovered()) tooltip("click: what was told lately (Ctrl+M)");
}

}  // namespace

void draw_status_line(const Ui& ui, const ScreenRect& rect, const Scene& scene,
                      const std::string& resolution, const std::string& tracks,
                      PanelRequests& requests) {
  begin_pane(ui, "status", rect);
  const std::string work = work_text(scene);
  const float right = rect.x1 - ui.px(12);
  const float left_of_work = right - text_size(ui.fonts.secondary, work).x;
  LineWriter line{ui, rect.x0 + ui.px(12), rect.y0, left_of_work - ui.px(16)};
  if (!scene.notice.empty()) {
    line.word(ui.fonts.secondary, ui.theme.text, scene.notice);
    ui.labels.add("Status/Notice", rect);
    offer_messages(rect, requests);
  } else if (!scene.source.problem.empty()) {
    line.word(ui.fonts.secondary, ui.theme.problem, scene.source.problem);
    ui.labels.add("Status/Problem", rect);
    offer_messages(rect, requests);
  } else {
    write_readout(line, scene, resolution, tracks);
  }
  LineWriter{ui, left_of_work, rect.y0, rect.x1}.word(ui.fonts.secondary, ui.theme.secondary, work);
  const ScreenRect work_rect{left_of_work, rect.y0, right, rect.y1};
  ui.labels.add("Status/Memory", work_rect);
  if (ImGui::IsMouseHoveringRect({work_rect.x0, work_rect.y0}, {work_rect.x1, work_rect.y1}) &&
      ImGui::IsWindowHovered()) {
    tooltip(memory_words(scene));
  }
  end_pane();
}

}  // namespace attnscope
