#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnscope::test {

/// A mouse and a keyboard of the X display that DISPLAY names, by its XTEST extension: what it does
/// takes the way of a hand's, through the server and the window library. Speaks the X protocol over
/// the display's socket and needs no library. Every member throws std::runtime_error where the
/// display does not answer, or lacks the extension.
class RealInput {
 public:
  RealInput();
  ~RealInput();
  RealInput(const RealInput&) = delete;
  RealInput& operator=(const RealInput&) = delete;

  /// In pixels of the screen.
  void move(int x, int y);
  /// 1: left, 2: middle, 3: right, 4 and 5: the wheel up and down.
  void button(int number, bool down);
  /// A key by its symbol: a letter, '[', or one of the kKey… values.
  void key(uint32_t symbol, bool down);
  /// Presses the key and lets it go, with Shift held where the symbol needs it.
  void tap(uint32_t symbol);
  /// Taps a letter after the other.
  void type(const std::string& text);
  /// Sets the display's resources ("Xft.dpi: 192"), which programs read as they connect.
  void set_resources(const std::string& text);

  static constexpr uint32_t kShift = 0xffe1, kControl = 0xffe3, kEscape = 0xff1b, kReturn = 0xff0d,
                            kBackspace = 0xff08, kLeft = 0xff51, kRight = 0xff53, kDown = 0xff54;

 private:
  void connect_display();
  void set_up();
  void find_extension();
  void read_keyboard();
  void send(const std::vector<uint8_t>& bytes);
  void receive(uint8_t* to, size_t bytes);
  /// The next reply; events that come before it are thrown away.
  std::vector<uint8_t> reply();
  /// Returns when the server has done all that was sent.
  void synchronise();
  void fake(uint8_t type, uint8_t detail, int x, int y);
  struct KeyPlace {
    uint8_t code = 0;
    bool shifted = false;
  };
  KeyPlace place_of(uint32_t symbol) const;

  int socket_ = -1;
  uint32_t root_ = 0;
  uint8_t extension_ = 0;
  uint8_t first_code_ = 8, last_code_ = 255;
  size_t symbols_per_code_ = 1;
  std::vector<uint32_t> symbols_;
};

}  // namespace attnscope::test
