#include "helper-linux/accessibility/applications.h"

#include "ipc/bounds.h"

namespace praefectus::accessibility {
namespace {

using Applications = kj::Vector<kj::Own<AccessibleApplication>>;

constexpr uint32_t WINDOWS_PER_APPLICATION = 64;
// Entries of the registry that are looked at. More than a list may have, so that it says that it
// was cut, and that one process is found among many.
constexpr size_t REGISTERED = 4 * bounds::APPLICATIONS;

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
  parts.add(into(application, objects.extents(window.ref, application.toolkit.space(), deadline),
                 [&](Rect rect) { window.extents = rect; }));
  return kj::joinPromises(parts.finish());
}

// The applications of one process.
using Group = kj::Vector<AccessibleApplication*>;

bool isTwin(const Group& group, const AccessibleWindow& one) {
  for (auto* application : group) {
    for (auto& other : application->windows) {
      if (&other != &one && other.title == one.title) return true;
    }
  }
  return false;
}

// Windows of one process that share a title, in one of its applications or in several, are told
// apart by where they are, as far as the toolkit says it, and by whether anything is in them.
kj::Promise<void> readTwins(Objects& objects, const Group& group, kj::TimePoint deadline) {
  kj::Vector<kj::Promise<void>> parts;
  for (auto* application : group) {
    for (auto& window : application->windows) {
      if (!isTwin(group, window)) continue;
      parts.add(into(*application, objects.childCount(window.ref, deadline),
                     [&window](int32_t count) { window.children = count; }));
      if (application->toolkit.isGtk4()) continue;
      parts.add(into(*application, objects.extents(window.ref, CoordinateSpace::SCREEN, deadline),
                     [&window](Rect rect) { window.screen = rect; }));
    }
  }
  return kj::joinPromises(parts.releaseAsArray());
}

// The windows, or as many as are read: an application is asked for no list of any length.
kj::Promise<void> findWindows(Objects& objects, AccessibleApplication& application, uint32_t count,
                              kj::TimePoint deadline) {
  auto add = [&application](ObjectRef&& ref) {
    application.windows.add(AccessibleWindow{kj::mv(ref), {}, {}, {}, {}});
  };
  if (count <= WINDOWS_PER_APPLICATION) {
    return into(application, objects.children(application.root, deadline),
                [add](kj::Vector<ObjectRef>&& list) {
                  for (auto& ref : list) add(kj::mv(ref));
                });
  }
  application.cut = true;
  kj::Vector<kj::Promise<void>> parts;
  for (uint32_t i = 0; i < WINDOWS_PER_APPLICATION; ++i) {
    parts.add(into(application, objects.childAt(application.root, i, deadline), add));
  }
  return kj::joinPromises(parts.releaseAsArray());
}

kj::Promise<void> readWindows(Objects& objects, AccessibleApplication& application, uint32_t count,
                              kj::TimePoint deadline) {
  return findWindows(objects, application, count, deadline)
      .then([&objects, &application, deadline]() {
        auto parts = KJ_MAP(window, application.windows) {
          return readWindow(objects, application, window, deadline);
        };
        return kj::joinPromises(kj::mv(parts));
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
        if (!application.answering || *windows <= 0) return kj::READY_NOW;
        return readWindows(objects, application, static_cast<uint32_t>(*windows), deadline);
      });
}

// What belongs together is read together: a silent process delays no other.
kj::Promise<void> readGroup(Objects& objects, Group group, kj::TimePoint deadline) {
  auto parts = KJ_MAP(application, group) {
    return readApplication(objects, *application, deadline);
  };
  return kj::joinPromises(kj::mv(parts)).then([&objects, deadline, group = kj::mv(group)]() {
    return readTwins(objects, group, deadline);
  });
}

kj::Promise<void> readProcesses(Objects& objects, Applications& applications,
                                kj::TimePoint deadline) {
  auto parts = KJ_MAP(application, applications) {
    return objects.processOf(application->root.bus, deadline)
        .then([&pid = application->pid](Answered<uint32_t>&& answer) {
          pid = answer.value.orDefault(0);
        });
  };
  return kj::joinPromises(kj::mv(parts));
}

// Those of processes that are wanted; one whose process is not known has gone.
Applications wantedOf(Applications found, kj::Maybe<uint32_t> onlyPid) {
  Applications out;
  for (auto& application : found) {
    bool wanted = application->pid != 0;
    KJ_IF_MAYBE (pid, onlyPid) wanted = *pid == application->pid;
    if (wanted) out.add(kj::mv(application));
  }
  return out;
}

kj::Promise<void> readAll(Objects& objects, Applications& applications, kj::TimePoint deadline) {
  kj::HashMap<uint32_t, Group> groups;
  for (auto& application : applications) {
    groups
        .findOrCreate(application->pid,
                      [&]() -> kj::HashMap<uint32_t, Group>::Entry {
                        return {application->pid, Group()};
                      })
        .add(application.get());
  }
  kj::Vector<kj::Promise<void>> parts;
  for (auto& group : groups) parts.add(readGroup(objects, kj::mv(group.value), deadline));
  return kj::joinPromises(parts.releaseAsArray());
}

}  // namespace

kj::Promise<kj::Maybe<Applications>> readApplications(Objects& objects, kj::Maybe<uint32_t> onlyPid,
                                                      kj::TimePoint deadline) {
  return objects.children(registryRoot(), deadline)
      .then([&objects, onlyPid, deadline](
                Answered<kj::Vector<ObjectRef>>&& answer) -> kj::Promise<kj::Maybe<Applications>> {
        KJ_IF_MAYBE (list, answer.value) {
          auto found = kj::heap<Applications>();
          for (auto& ref : *list) {
            if (found->size() >= REGISTERED) break;
            auto application = kj::heap<AccessibleApplication>();
            application->root = kj::mv(ref);
            found->add(kj::mv(application));
          }
          auto& all = *found;
          return readProcesses(objects, all, deadline)
              .then([&objects, &all, onlyPid, deadline]() {
                all = wantedOf(kj::mv(all), onlyPid);
                return readAll(objects, all, deadline);
              })
              .then([found = kj::mv(found)]() mutable -> kj::Maybe<Applications> {
                return kj::mv(*found);
              });
        }
        return kj::Maybe<Applications>(nullptr);
      });
}

}  // namespace praefectus::accessibility
