"""Checks tests/vectors/signed-v1.json without anything of ours and without Cap'n Proto's library.

The schemas are read as text and laid out here; the canonical bytes are made here from the values;
BLAKE2b is Python's, Ed25519 is OpenSSL's. Needs Debian's packages python3 and openssl.

    check-vectors.py SCHEMA-FOLDER FILE

Prints one line for each vector that does not hold, "SECTION NAME: what, what", and then exits 1.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SCHEMAS = ["words.capnp", "desktop.capnp", "action.capnp", "signed.capnp"]


class Wrong(Exception):
    """Values that their struct cannot hold."""


# ---- Schemas: structs and enumerations, and where each field of a struct lies


class Struct:
    def __init__(self, scope):
        self.scope = scope
        self.fields = []  # (ordinal, name, type, its union: None, "" for the one without a name, or its name)

    def lay_out(self, schema):
        """Gives each field its offset, in bits or pointers, as Cap'n Proto does: in the order of
        ordinals, into the smallest hole; a union's members share theirs, and its tag gets a place
        when the second member does. Places are in groups: None for what is always there."""
        self.words = self.pointers = 0
        self.tags = {}
        holes = {}
        shared = {}
        self.places = {None: {}}

        def take(bits):
            fitting = [size for size in holes if size >= bits]
            size = min(fitting, default=64)
            if fitting:
                at = holes.pop(size)
            else:
                at = self.words * 64
                self.words += 1
            while size > bits:
                size //= 2
                holes[size] = at + size
            return at

        def take_pointer():
            self.pointers += 1
            return self.pointers - 1

        for _, name, type_, union in sorted(self.fields, key=lambda field: field[0]):
            members = self.places.setdefault(union, {})
            if union is not None and len(members) == 1:
                self.tags[union] = take(16)
            bits = schema.bits(type_, self.scope)
            if bits == 0:
                at = None
            elif union is not None:
                taken = shared.setdefault(union, {})
                key = "pointer" if bits is None else bits
                if key not in taken:
                    if bits is not None and any(other != "pointer" for other in taken):
                        raise NotImplementedError("data of two widths in one union")
                    taken[key] = take_pointer() if bits is None else take(bits)
                at = taken[key]
            else:
                at = take_pointer() if bits is None else take(bits)
            members[name] = (type_, bits, at, None if union is None else len(members))


class Schema:
    WIDTHS = {"Void": 0, "Bool": 1, "UInt16": 16, "Int32": 32, "UInt32": 32, "Int64": 64,
              "UInt64": 64, "Text": None, "Data": None}

    def __init__(self, folder):
        self.structs = {}
        self.enums = {}
        for name in SCHEMAS:
            text = (pathlib.Path(folder) / name).read_text(encoding="utf-8")
            if name == "signed.capnp":
                self.labels = self.read_labels(text)
            text = re.sub(r'"[^"]*"', '""', text)
            text = re.sub(r"#.*", "", text)
            self.tokens = re.findall(r'[A-Za-z_][\w.]*|@\w+|[{}();:=$,]|""', text)
            self.read_block("")
        for struct in self.structs.values():
            struct.lay_out(self)

    @staticmethod
    def read_labels(text):
        """The table of labels at the head of signed.capnp: struct to (label, key)."""
        rows = re.findall(r'#\s+"([^"\\]+)\\0"\s+(\w+)\s+(\w+) key', text)
        return {struct: (label, key) for label, struct, key in rows}

    def skip_statement(self):
        depth = 0
        while True:
            token = self.tokens.pop(0)
            depth += {"{": 1, "}": -1}.get(token, 0)
            if depth == 0 and token in (";", "}"):
                return

    def read_block(self, scope, union=None):
        while self.tokens:
            token = self.tokens.pop(0)
            if token == "}":
                return
            if token == "struct":
                name = (scope + "." if scope else "") + self.tokens.pop(0)
                self.structs[name] = Struct(name)
                self.tokens.pop(0)
                self.read_block(name)
            elif token == "enum":
                name = (scope + "." if scope else "") + self.tokens.pop(0)
                self.enums[name] = self.read_enumerants()
            elif token == "union" and self.tokens[0] == "{":
                self.tokens.pop(0)
                self.read_block(scope, "")
            elif self.tokens[:3] == [":", "union", "{"]:
                del self.tokens[:3]
                self.read_block(scope, token)
            elif self.tokens and re.fullmatch(r"@\d+", self.tokens[0]) and self.tokens[1] == ":":
                ordinal = int(self.tokens.pop(0)[1:])
                self.tokens.pop(0)
                type_ = ""
                while self.tokens[0] not in (";", "$"):
                    type_ += self.tokens.pop(0)
                self.skip_statement()
                self.structs[scope].fields.append((ordinal, token, type_, union))
            elif token != ";":
                self.skip_statement()

    def read_enumerants(self):
        self.tokens.pop(0)
        names = []
        while self.tokens[0] != "}":
            names.append(self.tokens.pop(0))
            self.skip_statement()
        self.tokens.pop(0)
        return names

    def find(self, table, type_, scope):
        """A type as it is written in a scope: its own names first, then those around it."""
        name = type_.removeprefix("Words.")
        parts = scope.split(".") if scope else []
        for length in range(len(parts), -1, -1):
            found = table.get(".".join(parts[:length] + [name]))
            if found is not None:
                return found
        return None

    def bits(self, type_, scope):
        """Width in a data section; None for a pointer."""
        if type_ in self.WIDTHS:
            return self.WIDTHS[type_]
        if self.find(self.enums, type_, scope) is not None:
            return 16
        if type_.startswith("List(") or self.find(self.structs, type_, scope) is not None:
            return None
        raise NotImplementedError(f"a field of type {type_}")


# ---- The canonical form of a message


class Message:
    """One segment, in preorder, each struct without its trailing zeros."""

    def __init__(self, schema, struct, values):
        self.schema = schema
        self.bytes = bytearray(8)
        self.put_struct(0, schema.structs[struct], values)

    def place(self, content):
        """Appends content in whole words; the index of its first."""
        at = len(self.bytes) // 8
        self.bytes += content + bytes(-len(content) % 8)
        return at

    def point(self, pointer, at, low, high):
        word = (((at - pointer - 1) << 2 | low) & 0xFFFFFFFF) | high << 32
        self.bytes[pointer * 8:pointer * 8 + 8] = word.to_bytes(8, "little")

    def members(self, struct, values):
        """What is always there, and the one chosen member of each union."""
        if not isinstance(values, dict):
            raise Wrong("not an object")
        groups = {}
        own = {}
        for name, value in values.items():
            if name in struct.tags:
                groups[name] = value
            elif name in struct.places[None]:
                own[name] = value
            else:
                groups.setdefault("", {})[name] = value
        if set(own) != set(struct.places[None]) or set(groups) != set(struct.tags):
            raise Wrong("other fields than the struct has")
        yield from ((None, name, value) for name, value in own.items())
        for union, chosen in groups.items():
            if len(chosen) != 1 or not set(chosen) <= set(struct.places[union]):
                raise Wrong("not one member of a union")
            yield from ((union, name, value) for name, value in chosen.items())

    def sections(self, struct, values):
        """Data, and pointers as (type, value), both without trailing zeros."""
        data = 0
        pointers = [None] * struct.pointers
        for union, name, value in self.members(struct, values):
            type_, bits, at, tag = struct.places[union][name]
            if tag is not None:
                data |= tag << struct.tags[union]
            if bits is None:
                pointers[at] = (type_, value) if value is not None else None
            elif bits > 0:
                data |= self.number(type_, struct.scope, bits, value) << at
        while pointers and pointers[-1] is None:
            pointers.pop()
        return data.to_bytes((data.bit_length() + 63) // 64 * 8, "little"), pointers

    def number(self, type_, scope, bits, value):
        words = self.schema.find(self.schema.enums, type_, scope)
        if words is not None:
            return words.index(re.sub(r"_(\w)", lambda m: m[1].upper(), value))
        if type_ == "Bool":
            return int(value)
        number = int(value)
        least, most = (-(1 << bits - 1), 1 << bits - 1) if type_[0] == "I" else (0, 1 << bits)
        if not least <= number < most:
            raise Wrong("a number out of range")
        return number % (1 << bits)

    def put_pointers(self, first, scope, pointers):
        for i, pointer in enumerate(pointers):
            if pointer is not None:
                self.put(first + i, scope, *pointer)

    def put_struct(self, pointer, struct, values):
        data, pointers = self.sections(struct, values)
        at = self.place(data + bytes(8 * len(pointers)))
        if not data and not pointers:
            at = pointer  # A struct of no size points at the word before what follows: offset -1.
        self.point(pointer, at, 0, len(data) // 8 | len(pointers) << 16)
        self.put_pointers(at + len(data) // 8, struct.scope, pointers)

    def put(self, pointer, scope, type_, value):
        if type_ == "Text":
            text = value.encode() + b"\0"
            self.point(pointer, self.place(text), 1, 2 | len(text) << 3)
        elif type_ == "Data":
            data = bytes.fromhex(value)
            self.point(pointer, self.place(data), 1, 2 | len(data) << 3)
        elif type_.startswith("List("):
            self.put_list(pointer, scope, type_[5:-1], value)
        else:
            self.put_struct(pointer, self.schema.find(self.schema.structs, type_, scope), value)

    def put_list(self, pointer, scope, element, values):
        struct = self.schema.find(self.schema.structs, element, scope)
        if struct is not None:
            self.put_structs(pointer, struct, values)
        elif element in ("Text", "Data"):
            at = self.place(bytes(8 * len(values)))
            self.point(pointer, at, 1, 6 | len(values) << 3)
            self.put_pointers(at, scope, [(element, value) for value in values])
        elif self.schema.bits(element, scope) == 16:
            numbers = [self.number(element, scope, 16, value) for value in values]
            content = b"".join(number.to_bytes(2, "little") for number in numbers)
            self.point(pointer, self.place(content), 1, 3 | len(values) << 3)
        else:
            raise NotImplementedError(f"a list of {element}")

    def put_structs(self, pointer, struct, values):
        """Elements as wide as the widest, after a tag word."""
        parts = [self.sections(struct, value) for value in values]
        words = max((len(data) // 8 for data, _ in parts), default=0)
        pointers = max((len(pointers) for _, pointers in parts), default=0)
        tag = len(parts) << 2 | words << 32 | pointers << 48
        content = tag.to_bytes(8, "little")
        for data, _ in parts:
            content += data.ljust(words * 8, b"\0") + bytes(8 * pointers)
        at = self.place(content)
        self.point(pointer, at, 1, 7 | len(parts) * (words + pointers) << 3)
        for i, (_, own) in enumerate(parts):
            self.put_pointers(at + 1 + i * (words + pointers) + words, struct.scope, own)


# ---- Digests and signatures


def blake2b(data):
    return hashlib.blake2b(data, digest_size=32).digest()


def labelled(label, data):
    return label.encode() + b"\0" + data


class OpenSsl:
    PRIVATE = bytes.fromhex("302e020100300506032b657004220420")  # PKCS #8 before a seed.
    PUBLIC = bytes.fromhex("302a300506032b6570032100")  # SubjectPublicKeyInfo before a key.

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def run(self, *arguments):
        return subprocess.run(("openssl",) + arguments, capture_output=True, check=False)

    def file(self, name, content):
        (self.folder / name).write_bytes(content)
        return str(self.folder / name)

    def public_key(self, seed):
        key = self.file("private", self.PRIVATE + seed)
        return self.run("pkey", "-inform", "DER", "-in", key, "-pubout", "-outform",
                        "DER").stdout[len(self.PUBLIC):]

    def verifies(self, key, message, signature):
        return self.run("pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey",
                        self.file("public", self.PUBLIC + key), "-rawin", "-in",
                        self.file("message", message), "-sigfile",
                        self.file("signature", signature)).returncode == 0


# ---- The vectors. Each check yields what does not hold.


def check_key(vector, openssl):
    public = bytes.fromhex(vector["publicKey"])
    if openssl.public_key(bytes.fromhex(vector["seed"])) != public:
        yield "publicKey"
    if blake2b(public).hex()[:16] != vector["keyId"]:
        yield "keyId"


def encoded(schema, struct, values):
    try:
        return bytes(Message(schema, struct, values).bytes)
    except (Wrong, ValueError, AttributeError, TypeError) as error:
        print(f"{struct}: {error}", file=sys.stderr)
        return b""


def check_body(vector, schema, keys, openssl):
    body = bytes.fromhex(vector["body"])
    signature = bytes.fromhex(vector["signature"])
    key = keys[vector["key"]]
    if schema.labels.get(vector["struct"]) != (vector["label"], vector["key"]):
        yield "label"
    if encoded(schema, vector["struct"], vector["values"]) != body:
        yield "body"
    if blake2b(body).hex() != vector["digest"]:
        yield "digest"
    if not openssl.verifies(bytes.fromhex(key["publicKey"]), labelled(vector["label"], body),
                            signature):
        yield "signature"
    envelope = {"body": vector["body"], "issuer": vector["values"].get("issuer"),
                "keyId": key["keyId"], "signature": vector["signature"]}
    if encoded(schema, "Signed", envelope).hex() != vector["envelope"]:
        yield "envelope"


def check_action(vector, schema):
    data = bytes.fromhex(vector["bytes"])
    if encoded(schema, "Action", vector["values"]) != data:
        yield "bytes"
    if blake2b(labelled("praefectus/action/v1", data)).hex() != vector["hash"]:
        yield "hash"


def check_link(vector):
    sequence = int(vector["before"]["sequence"]) + 1

    def sized(text):
        return len(text.encode()).to_bytes(8, "little") + text.encode()

    link = blake2b(labelled("praefectus/link/v1", bytes.fromhex(vector["before"]["link"]) +
                            sequence.to_bytes(8, "little") + sized(vector["step"]) +
                            sized(vector["operation"]) + bytes.fromhex(vector["content"])))
    if vector["after"] != {"sequence": str(sequence), "link": link.hex()}:
        yield "after"


def faults(vectors, schema, openssl):
    """Lines that say what does not hold."""
    keys = {key["name"]: key for key in vectors["keys"]}
    sections = {
        "keys": lambda vector: check_key(vector, openssl),
        "bodies": lambda vector: check_body(vector, schema, keys, openssl),
        "actions": lambda vector: check_action(vector, schema),
        "links": check_link,
    }
    absent = [section for section in sections if not vectors[section]]
    if absent:
        yield from (f"{section}: none" for section in absent)
        return
    for section, check in sections.items():
        for vector in vectors[section]:
            found = list(check(vector))
            if found:
                yield f"{section} {vector['name']}: {', '.join(found)}"
    missing = set(schema.labels) - {vector["struct"] for vector in vectors["bodies"]}
    if missing:
        yield f"bodies: no {', '.join(sorted(missing))}"


def main(folder, file):
    vectors = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        found = list(faults(vectors, Schema(folder), OpenSsl(scratch)))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check-vectors.py SCHEMA-FOLDER FILE")
    sys.exit(main(sys.argv[1], sys.argv[2]))
