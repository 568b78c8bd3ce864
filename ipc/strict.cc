#include "ipc/strict.h"

#include "ipc/bounds.h"

#include <kj/exception.h>
#include <kj/vector.h>

#include <algorithm>
#include <unordered_map>

namespace praefectus {
namespace {

using capnp::AnyList;
using capnp::AnyPointer;
using capnp::AnyStruct;
using capnp::ElementSize;
using capnp::PointerType;
using capnp::schema::Type;

// What stands against the content, or nothing. (The reverse of Result<Done>, so that a check can be
// passed on with KJ_IF_MAYBE.)
using Objection = kj::Maybe<Refusal>;

constexpr kj::StringPtr EXTRA_BITS = "The message has data that its schema does not declare."_kj;
constexpr kj::StringPtr EXTRA_POINTER =
    "The message has a pointer that its schema does not declare."_kj;
constexpr kj::StringPtr UNKNOWN_TAG = "The message has an unknown union tag."_kj;
constexpr kj::StringPtr UNKNOWN_ENUMERANT = "The message has an unknown enumerant."_kj;
constexpr kj::StringPtr STRAY_CAPABILITY = "The message has a capability where none belongs."_kj;
constexpr kj::StringPtr WRONG_KIND = "The message has a pointer of the wrong kind."_kj;
constexpr kj::StringPtr BAD_TEXT = "The message has text that is not UTF-8 ending in NUL."_kj;
constexpr kj::StringPtr TOO_DEEP = "The message is nested too deeply."_kj;
constexpr kj::StringPtr BROKEN = "The message has a broken pointer."_kj;

Objection unknown(kj::StringPtr detail) { return Refusal{RefusalCode::UNKNOWN_FIELD, detail}; }
Objection malformed(kj::StringPtr detail) { return Refusal{RefusalCode::MALFORMED, detail}; }

// How a list of `type` is laid out, and so how wide a field of it is.
ElementSize layoutOf(capnp::Type type) {
  switch (type.which()) {
    case Type::VOID:
      return ElementSize::VOID;
    case Type::BOOL:
      return ElementSize::BIT;
    case Type::INT8:
    case Type::UINT8:
      return ElementSize::BYTE;
    case Type::INT16:
    case Type::UINT16:
    case Type::ENUM:
      return ElementSize::TWO_BYTES;
    case Type::INT32:
    case Type::UINT32:
    case Type::FLOAT32:
      return ElementSize::FOUR_BYTES;
    case Type::INT64:
    case Type::UINT64:
    case Type::FLOAT64:
      return ElementSize::EIGHT_BYTES;
    case Type::STRUCT:
      return ElementSize::INLINE_COMPOSITE;
    case Type::TEXT:
    case Type::DATA:
    case Type::LIST:
    case Type::INTERFACE:
    case Type::ANY_POINTER:
      return ElementSize::POINTER;
  }
  KJ_UNREACHABLE;
}

// Bits that a field of this layout takes in a data section; 0 for pointers, which take none.
size_t bitsOf(ElementSize layout) {
  switch (layout) {
    case ElementSize::VOID:
    case ElementSize::POINTER:
    case ElementSize::INLINE_COMPOSITE:
      return 0;
    case ElementSize::BIT:
      return 1;
    case ElementSize::BYTE:
      return 8;
    case ElementSize::TWO_BYTES:
      return 16;
    case ElementSize::FOUR_BYTES:
      return 32;
    case ElementSize::EIGHT_BYTES:
      return 64;
  }
  KJ_UNREACHABLE;
}

uint16_t twoBytes(Bytes bytes, size_t index) {
  size_t at = index * 2;
  if (at + 2 > bytes.size()) return 0;
  return static_cast<uint16_t>(bytes[at] | bytes[at + 1] << 8);
}

bool isEnumerant(uint16_t value, capnp::EnumSchema schema) {
  return value < schema.getEnumerants().size();
}

// What a schema declares of a struct, or of one member of a union in it, worked out once: a message
// has thousands of some. A group shares its struct's sections and stands among its fields.
struct Plan {
  struct Enum {
    size_t place;  // In units of two bytes.
    uint16_t enumerants;
  };
  struct Pointer {
    capnp::uint place;
    capnp::Type type;
  };
  struct Union {
    size_t tag;  // In units of two bytes.
    kj::Array<Plan> members;
  };
  kj::Vector<kj::byte> bits;  // Ones where there is data, in the data section.
  kj::Vector<Enum> enums;
  kj::Vector<Pointer> pointers;
  kj::Vector<Union> unions;

  // The members of an unknown tag are none; whoever asks has had the tag checked.
  template <typename Each>
  void chosen(Bytes data, Each each) const {
    for (auto& one : unions) {
      auto tag = twoBytes(data, one.tag);
      if (tag < one.members.size()) each(one.members[tag]);
    }
  }

  kj::byte declared(Bytes data, size_t at) const {
    kj::byte out = at < bits.size() ? bits[at] : 0;
    chosen(data, [&](const Plan& member) {
      out = static_cast<kj::byte>(out | member.declared(data, at));
    });
    return out;
  }

  bool hasPointer(Bytes data, capnp::uint at) const {
    bool out = std::any_of(pointers.begin(), pointers.end(),
                           [&](const Pointer& pointer) { return pointer.place == at; });
    chosen(data, [&](const Plan& member) { out = out || member.hasPointer(data, at); });
    return out;
  }
};

void addBits(Plan& to, size_t from, size_t count) {
  for (size_t bit = from; bit < from + count; ++bit) {
    while (to.bits.size() <= bit / 8) to.bits.add(0);
    to.bits[bit / 8] = static_cast<kj::byte>(to.bits[bit / 8] | 1u << bit % 8);
  }
}

void addFields(Plan& to, capnp::StructSchema schema);

void addField(Plan& to, capnp::StructSchema::Field field) {
  auto proto = field.getProto();
  auto type = field.getType();
  if (proto.isGroup()) return addFields(to, type.asStruct());
  size_t offset = proto.getSlot().getOffset();
  auto layout = layoutOf(type);
  if (layout == ElementSize::POINTER || layout == ElementSize::INLINE_COMPOSITE) {
    to.pointers.add(Plan::Pointer{static_cast<capnp::uint>(offset), type});
    return;
  }
  if (type.isEnum()) {
    auto enumerants = static_cast<uint16_t>(type.asEnum().getEnumerants().size());
    to.enums.add(Plan::Enum{offset, enumerants});
  }
  addBits(to, offset * bitsOf(layout), bitsOf(layout));
}

void addFields(Plan& to, capnp::StructSchema schema) {
  for (auto field : schema.getNonUnionFields()) addField(to, field);
  auto node = schema.getProto().getStruct();
  if (node.getDiscriminantCount() == 0) return;
  size_t tag = node.getDiscriminantOffset();
  addBits(to, tag * 16, 16);
  auto members = kj::heapArray<Plan>(node.getDiscriminantCount());
  for (uint16_t i = 0; i < members.size(); ++i) {
    addField(members[i], KJ_ASSERT_NONNULL(schema.getFieldByDiscriminant(i)));
  }
  to.unions.add(Plan::Union{tag, kj::mv(members)});
}

const Plan& planOf(capnp::StructSchema schema) {
  static thread_local std::unordered_map<uint64_t, Plan> plans;
  auto [place, isNew] = plans.try_emplace(schema.getProto().getId());
  if (isNew) addFields(place->second, schema);
  return place->second;
}

Objection checkPointer(AnyPointer::Reader pointer, capnp::Type type, int depth);

Objection checkFields(AnyStruct::Reader value, Bytes data, const Plan& plan, int depth) {
  for (auto& each : plan.enums) {
    if (twoBytes(data, each.place) >= each.enumerants) return unknown(UNKNOWN_ENUMERANT);
  }
  auto pointers = value.getPointerSection();
  for (auto& each : plan.pointers) {
    if (each.place >= pointers.size()) continue;
    KJ_IF_MAYBE (no, checkPointer(pointers[each.place], each.type, depth)) return *no;
  }
  for (auto& each : plan.unions) {
    auto tag = twoBytes(data, each.tag);
    if (tag >= each.members.size()) return unknown(UNKNOWN_TAG);
    KJ_IF_MAYBE (no, checkFields(value, data, each.members[tag], depth)) return *no;
  }
  return nullptr;
}

// What is there and belongs to no field.
Objection checkRemainder(AnyStruct::Reader value, Bytes data, const Plan& plan) {
  for (auto i : kj::indices(data)) {
    if ((data[i] & ~plan.declared(data, i)) != 0) return unknown(EXTRA_BITS);
  }
  auto pointers = value.getPointerSection();
  for (capnp::uint i = 0; i < pointers.size(); ++i) {
    if (!plan.hasPointer(data, i) && !pointers[i].isNull()) return unknown(EXTRA_POINTER);
  }
  return nullptr;
}

Objection checkStruct(AnyStruct::Reader value, const Plan& plan, int depth) {
  if (depth > bounds::NESTING) return malformed(TOO_DEEP);
  Bytes data = value.getDataSection();
  KJ_IF_MAYBE (no, checkFields(value, data, plan, depth)) return *no;
  return checkRemainder(value, data, plan);
}

Objection checkText(AnyList::Reader list) {
  if (list.getElementSize() != ElementSize::BYTE) return malformed(WRONG_KIND);
  auto bytes = list.getRawBytes();
  if (bytes.size() == 0 || bytes.back() != 0) return malformed(BAD_TEXT);
  auto chars = bytes.slice(0, bytes.size() - 1).asChars();
  if (!isText(kj::StringPtr(chars.begin(), chars.size()))) return malformed(BAD_TEXT);
  return nullptr;
}

Objection checkEnumerants(AnyList::Reader list, capnp::EnumSchema schema) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (!isEnumerant(twoBytes(list.getRawBytes(), i), schema)) return unknown(UNKNOWN_ENUMERANT);
  }
  return nullptr;
}

// The last byte of a list of bits may be used in part only.
Objection checkBits(AnyList::Reader list) {
  auto used = list.size() % 8;
  if (used != 0 && list.getRawBytes().back() >> used != 0) return unknown(EXTRA_BITS);
  return nullptr;
}

// `pointer` is known to be a list.
Objection checkList(AnyPointer::Reader pointer, capnp::Type element, int depth) {
  if (depth > bounds::NESTING) return malformed(TOO_DEEP);
  auto list = pointer.getAs<AnyList>();
  auto layout = layoutOf(element);
  if (list.getElementSize() != layout) return malformed(WRONG_KIND);
  if (element.isEnum()) return checkEnumerants(list, element.asEnum());
  if (layout == ElementSize::BIT) return checkBits(list);
  if (layout == ElementSize::INLINE_COMPOSITE) {
    auto& plan = planOf(element.asStruct());
    for (auto item : list.as<capnp::List<AnyStruct>>()) {
      KJ_IF_MAYBE (no, checkStruct(item, plan, depth + 1)) return *no;
    }
  }
  if (layout == ElementSize::POINTER) {
    for (auto item : list.as<capnp::List<AnyPointer>>()) {
      KJ_IF_MAYBE (no, checkPointer(item, element, depth)) return *no;
    }
  }
  return nullptr;
}

PointerType kindOf(capnp::Type type) {
  if (type.isInterface()) return PointerType::CAPABILITY;
  if (type.isStruct()) return PointerType::STRUCT;
  return PointerType::LIST;
}

Objection checkPointer(AnyPointer::Reader pointer, capnp::Type type, int depth) {
  auto kind = pointer.getPointerType();
  // Null stands for the default, and our schemas have no other default than empty.
  if (kind == PointerType::NULL_) return nullptr;
  // No schema of ours has an AnyPointer, and nothing could be checked behind one.
  if (type.isAnyPointer()) return malformed(WRONG_KIND);
  if (kind != kindOf(type)) {
    return kind == PointerType::CAPABILITY ? unknown(STRAY_CAPABILITY) : malformed(WRONG_KIND);
  }
  if (type.isInterface()) return nullptr;
  if (type.isStruct()) {
    return checkStruct(pointer.getAs<AnyStruct>(), planOf(type.asStruct()), depth + 1);
  }
  if (type.isText()) return checkText(pointer.getAs<AnyList>());
  if (type.isData()) return checkList(pointer, Type::UINT8, depth + 1);
  return checkList(pointer, type.asList().getElementType(), depth + 1);
}

}  // namespace

Result<Done> checkStrict(AnyStruct::Reader value, capnp::StructSchema schema) {
  Objection objection;
  // Cap'n Proto throws on pointers that lead out of the message, on loops and on amplification.
  KJ_IF_MAYBE (broken, kj::runCatchingExceptions(
                           [&]() { objection = checkStruct(value, planOf(schema), 0); })) {
    (void)broken;
    objection = malformed(BROKEN);
  }
  KJ_IF_MAYBE (no, objection) return *no;
  return Done();
}

}  // namespace praefectus
