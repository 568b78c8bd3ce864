-- The ledger's format, version 1.
--
-- Which operations were claimed, and how each one ended. Three rules carry everything else, and the
-- tables enforce them against any program that writes here, ours included:
--   * an operation id is used once;
--   * a claim never changes, an ending never changes, nothing is ever removed;
--   * every claim and every ending takes the next place in one chain of hashes.
--
-- Nothing private is kept: identifiers, hashes, words of ipc/schema/words.capnp, counts and times.
-- What was typed, read or shown is not here in any form; an action's hash is blinded by a random
-- value that nobody keeps.
--
-- Files. `ledger.db` with `ledger.db-wal` is the ledger: commits stand in the write-ahead log until
-- they are copied over, so one file without the other is not it, and a missing log is refused.
-- `ledger.db-shm` is scratch. `receipt.key` holds the private key that signs receipts.
--
-- Numbers are integers. Times are Unix milliseconds. Hashes are BLAKE2b-256, 32 bytes. In the
-- formulas below
--   ‖         joins byte strings
--   n64(x)    is x as 8 bytes, little-endian
--   sized(x)  is n64(number of bytes of x) ‖ x
--   "text"    is its UTF-8 bytes, and \0 one zero byte
-- and a column's name stands for its value: text as UTF-8 bytes, blobs as they are.

PRAGMA application_id = 0x50524C47;  -- "PRLG": file(1) and we know the file by this.
PRAGMA user_version = 1;             -- The format's version; another one is refused.

-- The keys that were pinned when the ledger was made: whose signatures count, each for one purpose.
CREATE TABLE ring (
  purpose INTEGER NOT NULL CHECK (purpose IN (1, 2, 3)),  -- 1 issuer, 2 publisher, 3 receipt
  issuer  TEXT    NOT NULL CHECK (length(issuer) BETWEEN 1 AND 256),
  key_id  TEXT    NOT NULL CHECK (length(key_id) BETWEEN 1 AND 256),
  key     BLOB    NOT NULL CHECK (length(key) = 32),      -- Ed25519 public key
  PRIMARY KEY (purpose, issuer, key_id)
) STRICT, WITHOUT ROWID;

-- Which ledger this is. One row, written last at creation, which also closes the ring.
--
-- The chain begins at
--   genesis = BLAKE2b-256("praefectus/genesis/v1\0" ‖ ledger_key ‖ n64(incarnation) ‖ receipt_key
--             ‖ n64(rows of ring) ‖ for each row of ring, by purpose, issuer, key_id as bytes:
--               n64(purpose) ‖ sized(issuer) ‖ sized(key_id) ‖ sized(key))
CREATE TABLE ledger (
  only        INTEGER PRIMARY KEY CHECK (only = 1),
  ledger_key  BLOB    NOT NULL CHECK (length(ledger_key) = 32),
    -- BLAKE2b-256 of the first receipt public key. With the incarnation: the audience of grants.
  incarnation INTEGER NOT NULL CHECK (incarnation BETWEEN 1 AND 4294967295),
  receipt_key BLOB    NOT NULL CHECK (length(receipt_key) = 32)
    -- Ed25519 public key that checks the receipts.
) STRICT;

-- One row for an operation: what was about to be done, by whose authority, through which helper.
-- The row is written, and on the device, before the first byte of the effect leaves the supervisor.
CREATE TABLE operation (
  id                TEXT    NOT NULL PRIMARY KEY
                            CHECK (length(id) BETWEEN 1 AND 256
                                   AND id NOT GLOB '*[^A-Za-z0-9._:-]*'),
  action_hash       BLOB    NOT NULL CHECK (length(action_hash) = 32),
  action_class      TEXT    NOT NULL CHECK (action_class IN (
                              'metadata_read', 'screenshot_read', 'pointer_mutation',
                              'keyboard_mutation', 'semantic_mutation', 'file_mutation')),
  kind              TEXT    NOT NULL CHECK (length(kind) BETWEEN 1 AND 64
                                            AND kind NOT GLOB '*[^a-z_]*'),
  grant_issuer      TEXT    NOT NULL CHECK (length(grant_issuer) BETWEEN 1 AND 256
                                            AND grant_issuer NOT GLOB '*[^A-Za-z0-9._:-]*'),
  grant_key_id      TEXT    NOT NULL CHECK (length(grant_key_id) BETWEEN 1 AND 256
                                            AND grant_key_id NOT GLOB '*[^A-Za-z0-9._:-]*'),
  grant_hash        BLOB    NOT NULL CHECK (length(grant_hash) = 32),  -- of the grant's body
  subject           TEXT    NOT NULL CHECK (length(subject) BETWEEN 1 AND 256
                                            AND subject NOT GLOB '*[^A-Za-z0-9._:-]*'),
  session           TEXT    NOT NULL CHECK (length(session) BETWEEN 1 AND 256
                                            AND session NOT GLOB '*[^A-Za-z0-9._:-]*'),
  turn              TEXT    NOT NULL CHECK (length(turn) BETWEEN 1 AND 256
                                            AND turn NOT GLOB '*[^A-Za-z0-9._:-]*'),
  helper_name       TEXT    NOT NULL CHECK (length(helper_name) <= 256
                                            AND helper_name NOT GLOB '*[^A-Za-z0-9._:-]*'),
  helper_release    TEXT    NOT NULL CHECK (length(helper_release) <= 256
                                            AND helper_release NOT GLOB '*[^A-Za-z0-9._:-]*'),
  helper_digest     BLOB    NOT NULL CHECK (length(helper_digest) = 32),  -- of its executable
  helper_generation INTEGER NOT NULL CHECK (helper_generation >= 0),
    -- Counts the helpers that the supervisor had started; 0, with an empty name, when none was
    -- involved.
  claimed_at        INTEGER NOT NULL,
  claimed           INTEGER,  -- Place of the claim in the chain; NULL when it ended before a claim.
  ended             INTEGER,  -- Place of the ending in the chain; NULL while the operation is open.
  CHECK ((claimed IS NULL) = (claimed_at = 0)),
  CHECK (claimed IS NOT NULL OR ended IS NOT NULL),
  CHECK (claimed IS NULL OR ended IS NULL OR ended > claimed)
) STRICT, WITHOUT ROWID;

-- What a start has to settle: found at a cost that depends on what is open, not on what is old.
CREATE INDEX open_operation ON operation (id) WHERE ended IS NULL;

-- The order of everything that happened here.
--
--   link = BLAKE2b-256("praefectus/link/v1\0" ‖ previous ‖ n64(sequence) ‖ sized(kind)
--          ‖ sized(operation) ‖ content)
--
-- `previous` is the link of the row before, genesis for the first. `content` is, for a claim,
--   BLAKE2b-256("praefectus/claim/v1\0" ‖ sized(id) ‖ action_hash ‖ sized(action_class)
--     ‖ sized(kind) ‖ sized(grant_issuer) ‖ sized(grant_key_id) ‖ grant_hash ‖ sized(subject)
--     ‖ sized(session) ‖ sized(turn) ‖ sized(helper_name) ‖ sized(helper_release) ‖ helper_digest
--     ‖ n64(helper_generation) ‖ n64(claimed_at))
-- of the operation's row, and for an ending BLAKE2b-256(receipt).
--
-- A receipt repeats its operation's row, states how it ended, and holds its own sequence and
-- previous link, so a signature over one receipt vouches for all that came before it. It is a
-- canonical Cap'n Proto struct Receipt (ipc/schema/signed.capnp). The signature is Ed25519 with the
-- receipt key over "praefectus/receipt/v1\0" ‖ receipt.
CREATE TABLE chain (
  sequence  INTEGER PRIMARY KEY,  -- 1, 2, 3, … without a gap.
  kind      TEXT NOT NULL CHECK (kind IN ('claim', 'ending')),
  operation TEXT NOT NULL REFERENCES operation (id),
  link      BLOB NOT NULL CHECK (length(link) = 32),
  terminal  TEXT CHECK (terminal IN ('succeeded', 'rejected', 'failed', 'cancelled_before_effect',
                                     'expired_before_effect', 'outcome_unknown')),
    -- As in the receipt; here for readers without Cap'n Proto.
  receipt   BLOB CHECK (length(receipt) BETWEEN 8 AND 65536 AND length(receipt) % 8 = 0),
  signature BLOB CHECK (length(signature) = 64),
  CHECK ((kind = 'ending') = (terminal IS NOT NULL)),
  CHECK ((kind = 'ending') = (receipt IS NOT NULL)),
  CHECK ((kind = 'ending') = (signature IS NOT NULL))
) STRICT;

-- The triggers. INSERT OR REPLACE would remove a row without asking a trigger for removals, so the
-- insertions themselves are checked too.

CREATE TRIGGER operation_once BEFORE INSERT ON operation
WHEN EXISTS (SELECT 1 FROM operation WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an operation id is used once'); END;

CREATE TRIGGER operation_in_order BEFORE INSERT ON operation
WHEN coalesce(NEW.claimed, NEW.ended) IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM chain)
  OR (NEW.claimed IS NOT NULL AND NEW.ended IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a claim takes the next place in the chain'); END;

CREATE TRIGGER operation_fixed BEFORE UPDATE OF
  id, action_hash, action_class, kind, grant_issuer, grant_key_id, grant_hash, subject, session,
  turn, helper_name, helper_release, helper_digest, helper_generation, claimed_at, claimed
ON operation
BEGIN SELECT RAISE(ABORT, 'a claim never changes'); END;

CREATE TRIGGER operation_ends_once BEFORE UPDATE OF ended ON operation
WHEN OLD.ended IS NOT NULL
  OR NEW.ended IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM chain)
BEGIN SELECT RAISE(ABORT, 'an operation ends once, in the next place of the chain'); END;

CREATE TRIGGER operation_stays BEFORE DELETE ON operation
BEGIN SELECT RAISE(ABORT, 'nothing is removed'); END;

CREATE TRIGGER chain_in_order BEFORE INSERT ON chain
WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM chain)
BEGIN SELECT RAISE(ABORT, 'the chain has no gap and no second row in one place'); END;

CREATE TRIGGER chain_agrees BEFORE INSERT ON chain
WHEN NEW.sequence IS NOT (SELECT CASE NEW.kind WHEN 'claim' THEN claimed ELSE ended END
                          FROM operation WHERE id = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'a place in the chain is the one its operation names'); END;

CREATE TRIGGER chain_fixed BEFORE UPDATE ON chain
BEGIN SELECT RAISE(ABORT, 'the chain never changes'); END;

CREATE TRIGGER chain_stays BEFORE DELETE ON chain
BEGIN SELECT RAISE(ABORT, 'nothing is removed'); END;

CREATE TRIGGER ring_closed BEFORE INSERT ON ring
WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT RAISE(ABORT, 'the ring is pinned at creation'); END;

CREATE TRIGGER ring_fixed BEFORE UPDATE ON ring
BEGIN SELECT RAISE(ABORT, 'the ring is pinned at creation'); END;

CREATE TRIGGER ring_stays BEFORE DELETE ON ring
BEGIN SELECT RAISE(ABORT, 'nothing is removed'); END;

CREATE TRIGGER ledger_once BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT RAISE(ABORT, 'a ledger is made once'); END;

CREATE TRIGGER ledger_fixed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'a ledger is made once'); END;

CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'nothing is removed'); END;
