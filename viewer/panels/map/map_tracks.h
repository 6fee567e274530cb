#pragma once

#include <memory>
#include <string>

#include "viewer/panels/map/rulers.h"
#include "viewer/view/maps/head_tracks.h"

namespace attnscope {

/// Numbers of the rows and of the keys as strips between rulers and map, pixel for pixel in line
/// with what is seen of the map: bars from the least to the greatest number of a pixel's tokens,
/// and a line through their means.
class MapTracks {
 public:
  /// Pixels that the strips take beside the map; 0: there is none.
  static float rows_width(const Ui& ui, const ViewState& state);
  static float keys_height(const Ui& ui, const ViewState& state);

  /// Where the strips and their labels stand; those of a strip that is not shown are not used.
  struct Areas {
    ScreenRect rows, rows_label, keys, keys_label;
    bool has_rows = false, has_keys = false;
  };
  void draw(const Ui& ui, const Scene& scene, const ViewTransform& view, const Areas& areas,
            PanelRequests& requests);
  /// The numbers under the mouse, on the map or on a strip, for the status line; may be empty.
  const std::string& readout() const { return readout_; }

 private:
  /// One strip: which numbers, along which axis.
  struct Strip {
    RulerAxis axis;
    std::string name = {}, unit = {};
    const std::vector<double>* values = nullptr;  ///< by token; null: not there yet
    const std::vector<double>* placed = nullptr;  ///< the same by the matrix' places
    const TrackRange* range = nullptr;
    ScreenRect rect = {}, label = {};
    ImU32 colour = 0;
  };
  void take(const Scene& scene);
  Strip rows_strip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                   const Areas& areas) const;
  Strip keys_strip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                   const Areas& areas) const;
  bool show(const Ui& ui, const Scene& scene, const Strip& strip);
  void draw_strip(const Ui& ui, const Scene& scene, const Strip& strip,
                  const std::optional<int64_t>& pointed);
  bool draw_label(const Ui& ui, const Scene& scene, const Strip& strip) const;
  static void draw_bins(const Ui& ui, const Strip& strip, bool exact);
  static std::string value_text(const Scene& scene, const Strip& strip, int64_t token);

  std::shared_ptr<const HeadTracks> of_;  ///< that the ranges are of
  TracksLook look_;
  std::shared_ptr<const PlacedSide> rows_side_, keys_side_;
  std::vector<double> rows_placed_, keys_placed_;  ///< where tokens do not stand as stored
  TrackRange rows_range_, keys_range_;
  std::string readout_;
};

}  // namespace attnscope
