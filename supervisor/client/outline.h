// An observation as text, for models and people: one line for each element, each under its parent
// and in the order in which the parent has them.
//
//   window "Letter – Editor" 800x600, frame 7
//   page "https://example.org/"
//   cut: elements
//   0 frame "Letter – Editor"
//     1 tool bar
//       3 push button "Save" [disabled] (click) 8,8 64x24
//     2 entry "Subject" = "Re: offer" [focused, settable] (activate) #subject 8,40 300x24
//     4 table [1500 children not listed: read below 4]
//
// The number is the element's place in the observation: what a request names. Then its role, its
// name between quotation marks, its value, what is special about its state, the actions that
// `invoke` accepts, the id that a web page gave it, and its place in the window: x,y and width x
// height. What is not there, and what is as it usually is, is left out: an element is enabled and
// shows when its parent does, unless its own line says otherwise.
//
// A text of the application stands between quotation marks on one line, with \" \\ \n \r \t for
// what would end either, and U+FFFD for characters that are not seen or change the order of others.
// So no application can write a line of its own.
#pragma once

#include "ipc/desktop.h"

namespace praefectus::client {

kj::String outline(const Observation& seen);

// What is different in `now`, for whoever has the outline of `before`:
//
//   - 5 list item "Draft"
//   + 9 in 2 list item "Sent" 8,64 90x16
//   ~ 3 push button "Save" (click) 8,8 64x24; was [disabled]
//   = 6..8 were 7..9
//
// An element of `before` that is no more; a new one, with what it is in unless that stands above
// it; one that changed; and those that only have other numbers now. Its first lines are those of an
// outline, which may say that something was cut, and how many elements are as they were. Nothing
// when `now` was not compared with `before`.
kj::Maybe<kj::String> outlineOfChanges(const Observation& before, const Observation& now);

}  // namespace praefectus::client
