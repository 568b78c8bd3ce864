// AT-SPI's numbers as words: roles, states and interfaces. Source: at-spi2-core 2.46,
// atspi/atspi-constants.h.
#pragma once

#include "ipc/desktop.h"

namespace praefectus::accessibility {

// The role numbers that a rule of ours names.
namespace role {
constexpr uint32_t COMBO_BOX = 11;
constexpr uint32_t DIAL = 15;
constexpr uint32_t DOCUMENT_WEB = 95;
constexpr uint32_t FRAME = 23;
constexpr uint32_t MENU = 33;
constexpr uint32_t PASSWORD_TEXT = 40;
constexpr uint32_t POPUP_MENU = 41;
constexpr uint32_t SCROLL_BAR = 48;
constexpr uint32_t SLIDER = 51;
constexpr uint32_t SPIN_BUTTON = 52;
constexpr uint32_t STATIC = 116;
}  // namespace role

// Role number to libatspi's name, such as "push button"; "unknown" for a number it does not know.
kj::StringPtr roleName(uint32_t role);

// The state bits that a rule of ours names.
namespace state {
constexpr unsigned BUSY = 3;
constexpr unsigned DEFUNCT = 6;
constexpr unsigned EDITABLE = 7;
constexpr unsigned ENABLED = 8;
constexpr unsigned FOCUSABLE = 11;
constexpr unsigned MODAL = 16;
constexpr unsigned SENSITIVE = 24;
constexpr unsigned SHOWING = 25;
constexpr unsigned VISIBLE = 30;
constexpr unsigned READ_ONLY = 43;
}  // namespace state

// The states of the wire; those it has no word for are left out.
States wireStates(uint64_t bits);

// What an object offers, as bits of wire::Face.
using Interfaces = uint32_t;
constexpr Interfaces bitOf(Face face) { return uint32_t{1} << static_cast<unsigned>(face); }
constexpr Interfaces ACTION = bitOf(Face::ACTION), COMPONENT = bitOf(Face::COMPONENT),
                     DOCUMENT = bitOf(Face::DOCUMENT), EDITABLE_TEXT = bitOf(Face::EDITABLE_TEXT),
                     TEXT = bitOf(Face::TEXT), VALUE = bitOf(Face::VALUE);

// The bit of an interface name, or 0 for one that has no word on the wire.
Interfaces interfaceBit(kj::StringPtr name);

}  // namespace praefectus::accessibility
