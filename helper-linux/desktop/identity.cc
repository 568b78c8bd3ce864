#include "helper-linux/desktop/identity.h"

#include "attest/digest.h"

#include <algorithm>

namespace praefectus::desktop {

Hash recognizedBy(const FrameId& frame, const accessibility::Node& node,
                  kj::ArrayPtr<const uint32_t> ancestorRoles) {
  attest::Digest digest(bytesOf(frame));
  digest.addNumber(node.role).addSized(node.name).addSized(node.accessibleId);
  digest.addSized(node.domId);

  auto names = KJ_MAP(name, node.actions)->kj::StringPtr { return name; };
  std::sort(names.begin(), names.end());
  digest.addNumber(names.size());
  for (auto name : names) digest.addSized(name);

  auto roles = ancestorRoles.slice(0, kj::min(ancestorRoles.size(), ANCESTOR_ROLES));
  digest.addNumber(roles.size());
  for (uint32_t role : roles) digest.addNumber(role);
  digest.addNumber(node.position);

  bool valued = accessibility::holdsValue(node);
  digest.addNumber(valued ? 1 : 0);
  if (valued) {
    digest.addNumber(node.value.is<kj::String>() ? 1 : node.value.is<double>() ? 2 : 0);
    digest.addNumber(node.valueCut ? 1 : 0).addNumber(static_cast<uint32_t>(node.characters));
    digest.addSized(valueBytes(node.value));
  }
  return digest.finish();
}

Hash elementDigest(const FrameId& frame, const Process& process,
                   const accessibility::ObjectRef& object, const Hash& recognized) {
  attest::Digest digest(bytesOf(frame));
  digest.addSized(object.bus).addSized(object.path);
  digest.addNumber(process.pid).addNumber(process.start);
  digest.addSized(bytesOf(recognized));
  return digest.finish();
}

Hash pageDigest(const FrameId& frame, const accessibility::ObjectRef& document, kj::StringPtr url) {
  attest::Digest digest(bytesOf(frame));
  digest.addSized(document.bus).addSized(document.path).addSized(url);
  return digest.finish();
}

}  // namespace praefectus::desktop
