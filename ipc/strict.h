// The strict reader: nothing unknown is ignored.
//
// Cap'n Proto drops what it does not know. Here a received struct must contain exactly what its
// schema declares. Every bit of a data section and every pointer has to belong to a declared field,
// the union member that the tag selects included; everything else must be zero. That covers fields
// of a newer schema, data hidden behind an inactive union member, unknown tags and enumerants,
// pointers of the wrong kind, text that is not NUL-terminated UTF-8, and capabilities where none
// belongs.
#pragma once

#include "ipc/words.h"

#include <capnp/any.h>
#include <capnp/schema.h>

namespace praefectus {

// Refuses: UNKNOWN_FIELD for content the schema does not declare; MALFORMED for wrong kinds, bad
// text, or nesting beyond bounds::NESTING. Capability-typed fields are accepted where the schema
// has them.
Result<Done> checkStrict(capnp::AnyStruct::Reader value, capnp::StructSchema schema);

template <typename Reader>
Result<Done> checkStrict(Reader reader) {
  return checkStrict(capnp::toAny(reader), capnp::Schema::from<capnp::FromReader<Reader>>());
}

}  // namespace praefectus
