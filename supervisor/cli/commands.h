// The commands. Each takes its arguments, does its work and returns a Report, or throws a Failure.
#pragma once

#include "attest/keyring.h"
#include "supervisor/cli/report.h"

namespace praefectus::cli {

using Arguments = kj::ArrayPtr<const kj::StringPtr>;

// Takes "--name VALUE" and "--name=VALUE" out of a command's arguments, and plain flags; what is
// left is positional. Throws a usage Failure for an unknown or repeated option, a missing value, or
// too many positionals.
class Options {
 public:
  struct Spec {
    kj::StringPtr name;
    bool takesValue;
  };
  Options(Arguments arguments, kj::ArrayPtr<const Spec> specs, size_t positionals);

  kj::Maybe<kj::StringPtr> value(kj::StringPtr name) const;
  bool has(kj::StringPtr name) const;
  kj::ArrayPtr<const kj::StringPtr> positional() const { return rest; }

 private:
  struct Given {
    kj::StringPtr name, value;
  };
  kj::Vector<Given> given;
  kj::Vector<kj::StringPtr> rest;
};

// The value of --key; nothing when it was not given. Throws a usage Failure when it is no public
// key.
kj::Maybe<attest::PublicKey> trustedKey(const Options& options);

Report apps(Arguments arguments);
Report windows(Arguments arguments);
Report observe(Arguments arguments);
Report screenshot(Arguments arguments);
Report capabilities(Arguments arguments);
Report status(Arguments arguments);
Report verify(Arguments arguments);
Report doctor(Arguments arguments);
Report keysMake(Arguments arguments);
Report keysList(Arguments arguments);
Report keysShow(Arguments arguments);
Report receiptsList(Arguments arguments);
Report receiptsShow(Arguments arguments);
Report receiptsExport(Arguments arguments);
Report grantShow(Arguments arguments);
Report ledgerReport(Arguments arguments);
Report ledgerCheck(Arguments arguments);
Report ledgerBackup(Arguments arguments);
Report ledgerRestore(Arguments arguments);
Report ledgerArchive(Arguments arguments);
Report ledgerImport(Arguments arguments);
Report ledgerAdopt(Arguments arguments);
Report ledgerRotate(Arguments arguments);
Report ledgerClock(Arguments arguments);
Report execute(Arguments arguments);
// Prints its steps as they happen, to standard error when `json`.
Report demo(Arguments arguments, bool json);

}  // namespace praefectus::cli
