// AT-SPI's numbers as words: roles, states and interfaces. Source: at-spi2-core 2.46,
// atspi/atspi-constants.h.
#pragma once

#include "ipc/desktop.h"

namespace praefectus::accessibility {

// The role numbers that a rule of ours names.
namespace role {
constexpr uint32_t DIAL = 15;
constexpr uint32_t PASSWORD_TEXT = 40;
constexpr uint32_t SCROLL_BAR = 48;
constexpr uint32_t SLIDER = 51;
constexpr uint32_t SPIN_BUTTON = 52;
}  // namespace role

// Role number to libatspi's name, such as "push button"; "unknown" for a number it does not know.
kj::StringPtr roleName(uint32_t role);

// The state bits that a rule of ours names.
namespace state {
constexpr unsigned DEFUNCT = 6;
constexpr unsigned EDITABLE = 7;
constexpr unsigned ENABLED = 8;
constexpr unsigned MODAL = 16;
constexpr unsigned SENSITIVE = 24;
constexpr unsigned SHOWING = 25;
constexpr unsigned VISIBLE = 30;
constexpr unsigned READ_ONLY = 43;
}  // namespace state

// The states of the wire; those it has no word for are left out.
States wireStates(uint64_t bits);

enum Interface : uint8_t { ACTION = 1, COMPONENT = 2, EDITABLE_TEXT = 4, TEXT = 8, VALUE = 16 };

// The bit of an interface name, or 0 for one that no rule of ours needs.
uint8_t interfaceBit(kj::StringPtr name);

}  // namespace praefectus::accessibility
