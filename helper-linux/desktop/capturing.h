// Pictures that are asked for by themselves: a screenshot of a window or a monitor, and a zoom into
// the present frame.
#pragma once

#include "helper-linux/desktop/link.h"
#include "helper-linux/desktop/target.h"
#include "ipc/action.h"

namespace praefectus::desktop {

class Capturing {
 public:
  // `frame` is the session's present one, if there is one.
  Capturing(Link& link, kj::Maybe<kj::Own<ObservedFrame>> frame, Action action)
      : link(link), frame(kj::mv(frame)), action(kj::mv(action)) {}
  KJ_DISALLOW_COPY(Capturing);

  // Refuses as Driver::capture does. Once.
  kj::Promise<Result<Picture>> run();

 private:
  // One look at the display: what the picture is to be of, and whether it is still that.
  Result<Done> look();
  Result<Done> lookAtWindow(const WindowRef& window);
  Result<Done> lookAtFrame(const PointTarget& target);
  Result<Done> lookAtMonitor(const MonitorId& id);
  kj::Promise<Result<Picture>> takePrepared();
  Result<Picture> take();
  Result<Picture> takeNow();

  Link& link;
  kj::Maybe<kj::Own<ObservedFrame>> frame;
  Action action;
  Rect bounds;  // Of the window or the monitor, in root coordinates.
};

}  // namespace praefectus::desktop
