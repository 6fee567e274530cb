#pragma once

// The functions in JavaScript that the window calls (browser.js). Texts are UTF-8 and end with 0;
// those that are returned are the caller's to free().
extern "C" {
/// Watches the canvas's size, what is pasted, and the context menu.
void browser_watch();
/// The address of the server's messages, and the token in this page's address; empty: there is
/// none.
char* browser_address();
char* browser_token();
/// The script of a view in this page's address, as view_script() writes it; empty: there is none.
char* browser_view();
/// Keeps the script of what is seen in this page's address, at once or soon.
void browser_keep_view(const char* script);
void browser_set_title(const char* title);
/// A name of CSS.
void browser_set_cursor(const char* name);
void browser_copy(const char* text);
/// A picture as a download: width × height × 3 bytes, from the top left.
void browser_save_picture(const char* name, const unsigned char* rgb, int width, int height);
/// Over all of the window; `action`: 0 none, else the button that web_act() tells of.
void browser_cover(const char* title, const char* text, const char* button, int action);
void browser_uncover();
/// At the upper edge; empty: away with it.
void browser_banner(const char* text);
void browser_reload();
/// The end of what window.attnscope.script() began: what it printed, and what went wrong.
void browser_script_done(int number, const char* lines, const char* problem);
}
