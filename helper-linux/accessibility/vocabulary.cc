#include "helper-linux/accessibility/vocabulary.h"

namespace praefectus::accessibility {
namespace {

// By number.
constexpr kj::StringPtr ROLES[] = {
    "invalid"_kj,
    "accelerator label"_kj,
    "alert"_kj,
    "animation"_kj,
    "arrow"_kj,
    "calendar"_kj,
    "canvas"_kj,
    "check box"_kj,
    "check menu item"_kj,
    "color chooser"_kj,
    "column header"_kj,
    "combo box"_kj,
    "date editor"_kj,
    "desktop icon"_kj,
    "desktop frame"_kj,
    "dial"_kj,
    "dialog"_kj,
    "directory pane"_kj,
    "drawing area"_kj,
    "file chooser"_kj,
    "filler"_kj,
    "focus traversable"_kj,
    "font chooser"_kj,
    "frame"_kj,
    "glass pane"_kj,
    "html container"_kj,
    "icon"_kj,
    "image"_kj,
    "internal frame"_kj,
    "label"_kj,
    "layered pane"_kj,
    "list"_kj,
    "list item"_kj,
    "menu"_kj,
    "menu bar"_kj,
    "menu item"_kj,
    "option pane"_kj,
    "page tab"_kj,
    "page tab list"_kj,
    "panel"_kj,
    "password text"_kj,
    "popup menu"_kj,
    "progress bar"_kj,
    "push button"_kj,
    "radio button"_kj,
    "radio menu item"_kj,
    "root pane"_kj,
    "row header"_kj,
    "scroll bar"_kj,
    "scroll pane"_kj,
    "separator"_kj,
    "slider"_kj,
    "spin button"_kj,
    "split pane"_kj,
    "status bar"_kj,
    "table"_kj,
    "table cell"_kj,
    "table column header"_kj,
    "table row header"_kj,
    "tearoff menu item"_kj,
    "terminal"_kj,
    "text"_kj,
    "toggle button"_kj,
    "tool bar"_kj,
    "tool tip"_kj,
    "tree"_kj,
    "tree table"_kj,
    "unknown"_kj,
    "viewport"_kj,
    "window"_kj,
    "extended"_kj,
    "header"_kj,
    "footer"_kj,
    "paragraph"_kj,
    "ruler"_kj,
    "application"_kj,
    "autocomplete"_kj,
    "editbar"_kj,
    "embedded"_kj,
    "entry"_kj,
    "chart"_kj,
    "caption"_kj,
    "document frame"_kj,
    "heading"_kj,
    "page"_kj,
    "section"_kj,
    "redundant object"_kj,
    "form"_kj,
    "link"_kj,
    "input method window"_kj,
    "table row"_kj,
    "tree item"_kj,
    "document spreadsheet"_kj,
    "document presentation"_kj,
    "document text"_kj,
    "document web"_kj,
    "document email"_kj,
    "comment"_kj,
    "list box"_kj,
    "grouping"_kj,
    "image map"_kj,
    "notification"_kj,
    "info bar"_kj,
    "level bar"_kj,
    "title bar"_kj,
    "block quote"_kj,
    "audio"_kj,
    "video"_kj,
    "definition"_kj,
    "article"_kj,
    "landmark"_kj,
    "log"_kj,
    "marquee"_kj,
    "math"_kj,
    "rating"_kj,
    "timer"_kj,
    "static"_kj,
    "math fraction"_kj,
    "math root"_kj,
    "subscript"_kj,
    "superscript"_kj,
    "description list"_kj,
    "description term"_kj,
    "description value"_kj,
    "footnote"_kj,
    "content deletion"_kj,
    "content insertion"_kj,
    "mark"_kj,
    "suggestion"_kj,
    "push button menu"_kj,
};
static_assert(kj::size(ROLES) > role::SPIN_BUTTON);

struct StateWord {
  unsigned bit;
  State word;
};
constexpr StateWord STATES[] = {
    {1, State::ACTIVE},
    {2, State::ARMED},
    {state::BUSY, State::BUSY},
    {4, State::CHECKED},
    {5, State::COLLAPSED},
    {state::DEFUNCT, State::DEFUNCT},
    {state::EDITABLE, State::EDITABLE},
    {state::ENABLED, State::ENABLED},
    {9, State::EXPANDABLE},
    {10, State::EXPANDED},
    {state::FOCUSABLE, State::FOCUSABLE},
    {12, State::FOCUSED},
    {14, State::HORIZONTAL},
    {15, State::ICONIFIED},
    {state::MODAL, State::MODAL},
    {17, State::MULTI_LINE},
    {18, State::MULTISELECTABLE},
    {19, State::OPAQUE},
    {20, State::PRESSED},
    {21, State::RESIZABLE},
    {22, State::SELECTABLE},
    {23, State::SELECTED},
    {state::SENSITIVE, State::SENSITIVE},
    {state::SHOWING, State::SHOWING},
    {26, State::SINGLE_LINE},
    {27, State::STALE},
    {28, State::TRANSIENT},
    {29, State::VERTICAL},
    {state::VISIBLE, State::VISIBLE},
    {31, State::MANAGES_DESCENDANTS},
    {32, State::INDETERMINATE},
    {33, State::REQUIRED},
    {34, State::TRUNCATED},
    {35, State::ANIMATED},
    {36, State::INVALID_ENTRY},
    {38, State::SELECTABLE_TEXT},
    {39, State::IS_DEFAULT},
    {40, State::VISITED},
    {41, State::CHECKABLE},
    {42, State::HAS_POPUP},
    {state::READ_ONLY, State::READ_ONLY},
};

struct InterfaceWord {
  kj::StringPtr name;  // After INTERFACE_START.
  Face face;
};
constexpr kj::StringPtr INTERFACE_START = "org.a11y.atspi."_kj;
constexpr InterfaceWord INTERFACES[] = {
    {"Action"_kj, Face::ACTION},
    {"Application"_kj, Face::APPLICATION},
    {"Collection"_kj, Face::COLLECTION},
    {"Component"_kj, Face::COMPONENT},
    {"Document"_kj, Face::DOCUMENT},
    {"EditableText"_kj, Face::EDITABLE_TEXT},
    {"Hyperlink"_kj, Face::HYPERLINK},
    {"Hypertext"_kj, Face::HYPERTEXT},
    {"Image"_kj, Face::IMAGE},
    {"Selection"_kj, Face::SELECTION},
    {"Table"_kj, Face::TABLE},
    {"TableCell"_kj, Face::TABLE_CELL},
    {"Text"_kj, Face::TEXT},
    {"Value"_kj, Face::VALUE},
};

}  // namespace

kj::StringPtr roleName(uint32_t role) {
  return role < kj::size(ROLES) ? ROLES[role] : "unknown"_kj;
}

States wireStates(uint64_t bits) {
  States out;
  for (auto& entry : STATES) {
    if ((bits >> entry.bit) & 1) out.set(entry.word);
  }
  return out;
}

Interfaces interfaceBit(kj::StringPtr name) {
  if (!name.startsWith(INTERFACE_START)) return 0;
  auto rest = name.slice(INTERFACE_START.size());
  for (auto& entry : INTERFACES) {
    if (entry.name == rest) return bitOf(entry.face);
  }
  return 0;
}

}  // namespace praefectus::accessibility
