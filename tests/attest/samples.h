// What the tests of this room share: keys from fixed seeds, one good value of each signed body, and
// a way of signing bytes that seal would never make.
#pragma once

#include "attest/signed.h"

#include <capnp/message.h>

namespace praefectus::attest {

SigningKey keyNumber(kj::byte number);

// One key for each purpose: issuer "host", publisher "publisher", receipts "ledger".
KeyRing sampleRing();
SigningKey issuerKey();
SigningKey publisherKey();
SigningKey receiptKey();
SigningKey keyFor(Purpose purpose);
kj::StringPtr issuerFor(Purpose purpose);

// Within every bound, and each field with a value that its neighbour has not.
Lease sampleLease();
Grant sampleGrant();
TaskGrant sampleTaskGrant();
Revocation sampleRevocation();
Receipt sampleReceipt();
Refused sampleRefused();
LedgerEvent sampleEvent();
// Of these bytes, for this machine.
Manifest sampleManifest(Bytes image);

// A receipt of an operation that was rejected before anything was sent.
Receipt sampleRejection();

// Signs any bytes as the body of such a value.
Envelope signedAs(kj::StringPtr label, const SigningKey& key, kj::StringPtr issuer, Bytes body);

// The same struct with one more word of data, and with one more pointer: what a newer version might
// send.
kj::Array<kj::byte> withOneMoreWord(Bytes canonicalStruct);
kj::Array<kj::byte> withOneMorePointer(Bytes canonicalStruct);
// The same meaning with a hole in it.
kj::Array<kj::byte> notCanonical(Bytes canonicalStruct);

}  // namespace praefectus::attest
