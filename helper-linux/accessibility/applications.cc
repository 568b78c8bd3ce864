#include "helper-linux/accessibility/applications.h"

#include "ipc/bounds.h"

namespace praefectus::accessibility {
namespace {

using Applications = kj::Vector<kj::Own<AccessibleApplication>>;

constexpr uint32_t WINDOWS_PER_APPLICATION = 64;

// Stores an answer; silence marks the application, an error does not.
template <typename T, typename Store>
kj::Promise<void> into(AccessibleApplication& application, kj::Promise<Answered<T>> asked,
                       Store store) {
  return asked.then([&application, store = kj::mv(store)](Answered<T>&& answer) mutable {
    KJ_IF_MAYBE (value, answer.value) {
      store(kj::mv(*value));
    } else if (answer.silent()) {
      application.answering = false;
    }
  });
}

kj::Promise<void> readWindow(Objects& objects, AccessibleApplication& application,
                             AccessibleWindow& window, kj::TimePoint deadline) {
  auto parts = kj::heapArrayBuilder<kj::Promise<void>>(2);
  parts.add(into(application, objects.name(window.ref, deadline),
                 [&](kj::String&& title) { window.title = kj::mv(title); }));
  parts.add(into(application, objects.extents(window.ref, CoordinateSpace::WINDOW, deadline),
                 [&](Rect rect) { window.extents = rect; }));
  return kj::joinPromises(parts.finish());
}

// Windows that share a title are told apart by where they are, as far as the toolkit says it.
kj::Promise<void> readPositions(Objects& objects, AccessibleApplication& application,
                                kj::TimePoint deadline) {
  kj::Vector<kj::Promise<void>> parts;
  for (size_t i = 0; i < application.windows.size() && !application.toolkit.isGtk4(); ++i) {
    for (size_t j = 0; j < application.windows.size(); ++j) {
      auto& window = application.windows[i];
      if (i == j || window.title != application.windows[j].title) continue;
      parts.add(into(application, objects.extents(window.ref, CoordinateSpace::SCREEN, deadline),
                     [&window](Rect rect) { window.screen = rect; }));
      break;
    }
  }
  return kj::joinPromises(parts.releaseAsArray());
}

kj::Promise<void> readWindows(Objects& objects, AccessibleApplication& application,
                              kj::TimePoint deadline) {
  return objects.children(application.root, deadline)
      .then([&objects, &application,
             deadline](Answered<kj::Vector<ObjectRef>>&& answer) -> kj::Promise<void> {
        if (answer.silent()) application.answering = false;
        KJ_IF_MAYBE (list, answer.value) {
          for (auto& ref : *list)
            application.windows.add(AccessibleWindow{kj::mv(ref), {}, {}, {}});
        }
        auto parts = KJ_MAP(window, application.windows) {
          return readWindow(objects, application, window, deadline);
        };
        return kj::joinPromises(kj::mv(parts)).then([&objects, &application, deadline]() {
          return readPositions(objects, application, deadline);
        });
      });
}

kj::Promise<void> readApplication(Objects& objects, AccessibleApplication& application,
                                  kj::TimePoint deadline) {
  auto parts = kj::heapArrayBuilder<kj::Promise<void>>(4);
  auto windows = kj::heap<int32_t>(0);
  parts.add(into(application, objects.name(application.root, deadline),
                 [&](kj::String&& name) { application.name = kj::mv(name); }));
  parts.add(into(application, objects.toolkitName(application.root, deadline),
                 [&](kj::String&& name) { application.toolkit.name = kj::mv(name); }));
  parts.add(into(application, objects.toolkitVersion(application.root, deadline),
                 [&](kj::String&& version) { application.toolkit.version = kj::mv(version); }));
  parts.add(into(application, objects.childCount(application.root, deadline),
                 [&count = *windows](int32_t value) { count = value; }));
  return kj::joinPromises(parts.finish())
      .then([&objects, &application, deadline, windows = kj::mv(windows)]() -> kj::Promise<void> {
        bool some = *windows > 0 && static_cast<uint32_t>(*windows) <= WINDOWS_PER_APPLICATION;
        if (!application.answering || !some) return kj::READY_NOW;
        return readWindows(objects, application, deadline);
      });
}

kj::Promise<void> readOne(Objects& objects, AccessibleApplication& application,
                          kj::Maybe<uint32_t> onlyPid, kj::TimePoint deadline) {
  return objects.processOf(application.root.bus, deadline)
      .then([&objects, &application, onlyPid,
             deadline](Answered<uint32_t>&& pid) -> kj::Promise<void> {
        application.pid = pid.value.orDefault(0);
        if (application.pid == 0) return kj::READY_NOW;
        KJ_IF_MAYBE (wanted, onlyPid) {
          if (*wanted != application.pid) return kj::READY_NOW;
        }
        return readApplication(objects, application, deadline);
      });
}

}  // namespace

kj::Promise<kj::Maybe<Applications>> readApplications(Objects& objects, kj::Maybe<uint32_t> onlyPid,
                                                      kj::TimePoint deadline) {
  return objects.children(registryRoot(), deadline)
      .then([&objects, onlyPid, deadline](
                Answered<kj::Vector<ObjectRef>>&& answer) -> kj::Promise<kj::Maybe<Applications>> {
        KJ_IF_MAYBE (list, answer.value) {
          Applications found;
          for (auto& ref : *list) {
            if (found.size() >= bounds::APPLICATIONS) break;
            auto application = kj::heap<AccessibleApplication>();
            application->root = kj::mv(ref);
            found.add(kj::mv(application));
          }
          auto parts = KJ_MAP(application, found) {
            return readOne(objects, *application, onlyPid, deadline);
          };
          return kj::joinPromises(kj::mv(parts))
              .then([found = kj::mv(found), onlyPid]() mutable -> kj::Maybe<Applications> {
                Applications kept;
                for (auto& application : found) {
                  bool wanted = application->pid != 0;
                  KJ_IF_MAYBE (pid, onlyPid) wanted = *pid == application->pid;
                  if (wanted) kept.add(kj::mv(application));
                }
                return kj::mv(kept);
              });
        }
        return kj::Maybe<Applications>(nullptr);
      });
}

}  // namespace praefectus::accessibility
