// Properties of windows as xcb gives them. Used inside this room only.
#pragma once

#include "helper-linux/x11/display.h"
#include "helper-linux/x11/title.h"

namespace praefectus::x11 {

using Property = Freed<xcb_get_property_reply_t>;

constexpr uint32_t TITLE_WORDS = 1024;
constexpr uint32_t LIST_WORDS = 4096;

inline xcb_get_property_cookie_t askProperty(xcb_connection_t* connection, xcb_window_t window,
                                             xcb_atom_t name, uint32_t words) {
  return xcb_get_property(connection, 0, window, name, XCB_ATOM_ANY, 0, words);
}

// A property's 32-bit items; empty when it is absent or has another format.
inline kj::ArrayPtr<const uint32_t> items(const Property& property) {
  if (!property || property->format != 32) return nullptr;
  return kj::arrayPtr(static_cast<const uint32_t*>(xcb_get_property_value(property.get())),
                      property->value_len);
}

inline kj::String textIn(const Property& property, Encoding encoding) {
  if (!property || property->format != 8) return kj::String();
  auto start = static_cast<const char*>(xcb_get_property_value(property.get()));
  return titleFrom(encoding, kj::arrayPtr(start, property->value_len), property->bytes_after > 0);
}

}  // namespace praefectus::x11
