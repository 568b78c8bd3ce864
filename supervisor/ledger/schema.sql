-- The ledger's format, version 2.
--
-- Which operations were claimed, how each one ended, and what happened to the ledger itself. Three
-- rules carry everything else, and the tables enforce them against any program that writes here, ours
-- included:
--   * an operation id is used once;
--   * what is recorded never changes, and only what an archive holds is ever removed;
--   * every claim, ending and event takes the next place in one chain of hashes.
--
-- Nothing private is kept: identifiers, hashes, words of ipc/schema/words.capnp in snake_case, counts
-- and times. What was typed, read or shown is not here in any form; an action's hash is blinded by a
-- random value that nobody keeps.
--
-- Files. `ledger.db` with `ledger.db-wal` is the ledger: commits stand in the write-ahead log until
-- they are copied over, so one file without the other is not it, and a missing log is refused.
-- `ledger.db-shm` is scratch. `receipt.key` holds the private key that signs.
--
-- An archive is one file of this format, without a log, whose application_id is 0x50524C41 ("PRLA"). It
-- has ring, ledger and every event up to its making, and of operations and endings a part of the chain:
-- from behind the last place that an earlier archive took, which an event `archived` in it states with
-- its link, to the place before its mark; besides, claims of earlier parts that are quarantined. Between
-- events of other parts places are missing.
--
-- Numbers are integers. Times are Unix milliseconds. Hashes are BLAKE2b-256, 32 bytes. In the
-- formulas below
--   ‖         joins byte strings
--   n64(x)    is x as 8 bytes, little-endian
--   sized(x)  is n64(number of bytes of x) ‖ x
--   "text"    is its UTF-8 bytes, and \0 one zero byte
-- and a column's name stands for its value: text as UTF-8 bytes, blobs as they are.
--
-- THE CHAIN. A place is a number from 1 on, without a gap: that of a row of `operation` (a claim), of
-- `ending` or of `event`. Each has a link:
--
--   link = BLAKE2b-256("praefectus/link/v1\0" ‖ previous ‖ n64(place) ‖ sized(step) ‖ sized(id)
--          ‖ content)
--
--   previous  the link in the place before; for place 1,
--             BLAKE2b-256("praefectus/genesis/v2\0" ‖ receipt_key of `ledger` ‖ n64(rows of ring)
--               ‖ for each row of ring, by purpose, issuer, key_id as bytes:
--                 n64(purpose) ‖ sized(issuer) ‖ sized(key_id) ‖ sized(key))
--   step      "claim", "ending" or "event"
--   id        the operation's; empty for an event
--   content   for a claim, of its row and the rows of `authority` and `helper` that it names,
--             BLAKE2b-256("praefectus/claim/v2\0" ‖ sized(id) ‖ action_hash ‖ sized(action_class)
--               ‖ sized(kind) ‖ sized(mode) ‖ sized(risk) ‖ sized(proof) ‖ sized(rights)
--               ‖ sized(issuer) ‖ sized(key_id) ‖ grant_hash ‖ n64(policy_generation) ‖ sized(lease)
--               ‖ sized(subject) ‖ sized(session) ‖ sized(turn) ‖ sized(name) ‖ sized(release)
--               ‖ digest ‖ n64(helper_generation) ‖ n64(claimed_at))
--             for an ending BLAKE2b-256(receipt), for an event BLAKE2b-256(body)
--
-- After damage the chain goes on from the link that stands there, or from 32 zero bytes where none
-- does, so that the damage is found in its own place and not from there on.
--
-- THE RECEIPT of an ending is not stored, since all of it is here. It is the canonical form (one
-- segment, no table) of a Cap'n Proto struct Receipt of ipc/schema/signed.capnp, with
--
--   version 1, issuer "ledger"
--   keyId             first 16 hexadecimal digits of BLAKE2b-256(the receipt key of its time)
--   ledger.key        BLAKE2b-256(receipt_key of `ledger`), ledger.incarnation that of its time
--   operation … rights, grantHash, claimedAt      columns of `operation`; claimedAt 0 for NULL
--   grantIssuer … turn                            columns of `authority`: issuer, key_id, …
--   helper                                        name, release, digest of `helper`, and
--                                                 helper_generation; all zero and empty for NULL
--   route … warnings, settledAt                   columns of `ending`; hasRefusal is whether
--                                                 refusal is not NULL, 0 standing in its place
--   sequence          place of the ending
--   previous          its column
--
-- where each enumerant is the one whose name in snake_case is the column's word, `rights` and
-- `warnings` are words in their order with a space between, and flags are 0 and 1. The receipt key and
-- the incarnation of its time are what the events before that place say: the key of `ledger` and 1,
-- until an event `key_rotated` or `adopted` states another. The signature is Ed25519 with that key
-- over "praefectus/receipt/v1\0" ‖ receipt. A receipt holds its own place and the link before it, so
-- one signature vouches for all that came before.
--
-- Why so. A commit costs what it touches: a claim the last page of `operation` and one of the index on
-- its id, an ending the last page of `ending` and of the index on its operation. Hence names that
-- repeat stand in tables of their own, and "open" is neither a column nor an index, which would cost
-- every operation two more pages: what is open is found from `mark` on. An ending has its own place as
-- its key, and not its operation's, so that the next place, any link, and the chain in its order are
-- each found by a key.

PRAGMA application_id = 0x50524C47;  -- "PRLG": file(1) and we know the file by this.
PRAGMA user_version = 2;             -- The format's version; another one is refused.

-- The keys that were pinned when the ledger was made: whose signatures count, each for one purpose.
CREATE TABLE ring (
  purpose INTEGER NOT NULL CHECK (purpose IN (1, 2, 3)),  -- 1 issuer, 2 publisher, 3 receipt
  issuer  TEXT    NOT NULL CHECK (length(issuer) BETWEEN 1 AND 256),
  key_id  TEXT    NOT NULL CHECK (length(key_id) BETWEEN 1 AND 256),
  key     BLOB    NOT NULL CHECK (length(key) = 32),      -- Ed25519 public key
  PRIMARY KEY (purpose, issuer, key_id)
) STRICT, WITHOUT ROWID;

-- Which ledger this is. One row, written at creation, which also closes the ring.
CREATE TABLE ledger (
  only        INTEGER PRIMARY KEY CHECK (only = 1),
  receipt_key BLOB    NOT NULL CHECK (length(receipt_key) = 32)
    -- The first Ed25519 public key that checks what is signed here. Its BLAKE2b-256 is the ledger's
    -- id, which with the incarnation is the audience of grants.
) STRICT;

-- By whose authority something was done. The same names may stand here more than once.
CREATE TABLE authority (
  id                INTEGER PRIMARY KEY,
  issuer            TEXT    NOT NULL CHECK (length(issuer) BETWEEN 1 AND 256
                                            AND issuer NOT GLOB '*[^A-Za-z0-9._:-]*'),
  key_id            TEXT    NOT NULL CHECK (length(key_id) BETWEEN 1 AND 256
                                            AND key_id NOT GLOB '*[^A-Za-z0-9._:-]*'),
  policy_generation INTEGER NOT NULL CHECK (policy_generation >= 1),
  lease             TEXT    NOT NULL CHECK (length(lease) BETWEEN 1 AND 256
                                            AND lease NOT GLOB '*[^A-Za-z0-9._:-]*'),
  subject           TEXT    NOT NULL CHECK (length(subject) BETWEEN 1 AND 256
                                            AND subject NOT GLOB '*[^A-Za-z0-9._:-]*'),
  session           TEXT    NOT NULL CHECK (length(session) BETWEEN 1 AND 256
                                            AND session NOT GLOB '*[^A-Za-z0-9._:-]*'),
  turn              TEXT    NOT NULL CHECK (length(turn) BETWEEN 1 AND 256
                                            AND turn NOT GLOB '*[^A-Za-z0-9._:-]*')
) STRICT;

-- Through which helper image. The same one may stand here more than once.
CREATE TABLE helper (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 256
                               AND name NOT GLOB '*[^A-Za-z0-9._:-]*'),
  release TEXT NOT NULL CHECK (length(release) BETWEEN 1 AND 256
                               AND release NOT GLOB '*[^A-Za-z0-9._:-]*'),
  digest  BLOB NOT NULL CHECK (length(digest) = 32)  -- of its executable
) STRICT;

-- One row for an operation: what was about to be done. The row is written, and on the device, before
-- the first byte of the effect leaves the supervisor.
CREATE TABLE operation (
  place             INTEGER PRIMARY KEY,
    -- Of its claim; of its ending when it ended before a claim.
  id                TEXT    NOT NULL UNIQUE
                            CHECK (length(id) BETWEEN 1 AND 256
                                   AND id NOT GLOB '*[^A-Za-z0-9._:-]*'),
  action_hash       BLOB    NOT NULL CHECK (length(action_hash) = 32),
  action_class      TEXT    NOT NULL CHECK (length(action_class) BETWEEN 1 AND 32
                                            AND action_class NOT GLOB '*[^a-z_]*'),
  kind              TEXT    NOT NULL CHECK (length(kind) BETWEEN 1 AND 64
                                            AND kind NOT GLOB '*[^a-z_]*'),
  mode              TEXT    NOT NULL CHECK (length(mode) BETWEEN 1 AND 32
                                            AND mode NOT GLOB '*[^a-z_]*'),
  risk              TEXT    NOT NULL CHECK (length(risk) BETWEEN 1 AND 32
                                            AND risk NOT GLOB '*[^a-z_]*'),
  proof             TEXT    NOT NULL CHECK (length(proof) BETWEEN 1 AND 32
                                            AND proof NOT GLOB '*[^a-z_]*'),
  rights            TEXT    NOT NULL CHECK (length(rights) <= 64 AND rights NOT GLOB '*[^a-z_ ]*'),
    -- Of "focus own_pointer user_pointer irreversible" those that were granted.
  grant_hash        BLOB    NOT NULL CHECK (length(grant_hash) = 32),  -- of the grant's body
  authority         INTEGER NOT NULL,
  helper            INTEGER,           -- NULL when none was involved.
  helper_generation INTEGER NOT NULL CHECK (helper_generation >= 0),
    -- Counts the helpers that the supervisor had started; 0 when none was involved.
  claimed_at        INTEGER CHECK (claimed_at > 0),        -- NULL when it ended before a claim.
  link              BLOB    CHECK (length(link) = 32),     -- Of the claim.
  CHECK ((claimed_at IS NULL) = (link IS NULL)),
  CHECK ((helper IS NULL) = (helper_generation = 0))
) STRICT;

-- How an operation ended.
CREATE TABLE ending (
  place       INTEGER PRIMARY KEY,
  operation   INTEGER NOT NULL UNIQUE,  -- Place of the operation's row.
  terminal    TEXT    NOT NULL CHECK (terminal IN (
                        'succeeded', 'rejected', 'failed', 'cancelled_before_effect',
                        'expired_before_effect', 'outcome_unknown')),
  effect      TEXT    NOT NULL CHECK (effect IN ('none', 'verified', 'executed_unverified',
                                                 'unknown')),
  refusal     TEXT    CHECK (length(refusal) BETWEEN 1 AND 64 AND refusal NOT GLOB '*[^a-z_]*'),
  retry_safe  INTEGER NOT NULL CHECK (retry_safe IN (0, 1)),
  route       TEXT    NOT NULL CHECK (length(route) BETWEEN 1 AND 32
                                      AND route NOT GLOB '*[^a-z_]*'),
  verdict     TEXT    NOT NULL CHECK (length(verdict) BETWEEN 1 AND 32
                                      AND verdict NOT GLOB '*[^a-z_]*'),
  method      TEXT    NOT NULL CHECK (length(method) BETWEEN 1 AND 32
                                      AND method NOT GLOB '*[^a-z_]*'),
  source      TEXT    NOT NULL CHECK (length(source) BETWEEN 1 AND 32
                                      AND source NOT GLOB '*[^a-z_]*'),
  units_done  INTEGER NOT NULL CHECK (units_done BETWEEN 0 AND 4294967295),
  units_asked INTEGER NOT NULL CHECK (units_asked BETWEEN 0 AND 4294967295),
  context     TEXT    NOT NULL CHECK (length(context) BETWEEN 1 AND 32
                                      AND context NOT GLOB '*[^a-z_]*'),
  warnings    TEXT    NOT NULL CHECK (length(warnings) <= 512
                                      AND warnings NOT GLOB '*[^a-z_ ]*'),
  settled_at  INTEGER NOT NULL,
  previous    BLOB    NOT NULL CHECK (length(previous) = 32),
    -- The link in the place before, as the receipt states it: damage there leaves this one whole.
  link        BLOB    NOT NULL CHECK (length(link) = 32),
  signature   BLOB    NOT NULL CHECK (length(signature) = 64)
) STRICT;

-- What happened to the ledger itself. `body` is a canonical struct LedgerEvent of signed.capnp, which
-- states place, previous link, time and content; the signature is Ed25519 over
-- "praefectus/event/v1\0" ‖ body, with the receipt key that was valid before the event. An event is
-- never removed: who the ledger is, what was revoked and what its clock was are read from here.
CREATE TABLE event (
  place     INTEGER PRIMARY KEY,
  kind      TEXT    NOT NULL CHECK (kind IN (
                      'created', 'adopted', 'started', 'clock_accepted', 'key_rotated', 'revoked',
                      'archived', 'imported', 'quarantined')),
  about     INTEGER,  -- archived: the last place that was moved; quarantined: the claim's place.
  at        INTEGER NOT NULL,
  body      BLOB    NOT NULL CHECK (length(body) BETWEEN 8 AND 131072 AND length(body) % 8 = 0),
  link      BLOB    NOT NULL CHECK (length(link) = 32),
  signature BLOB    NOT NULL CHECK (length(signature) = 64),
  CHECK ((kind = 'created') = (place = 1)),
  CHECK ((kind IN ('archived', 'quarantined')) = (about IS NOT NULL))
) STRICT;

-- The last event of a kind is found at the same cost however many came before.
CREATE INDEX event_by_kind ON event (kind, about);

-- Ids that were used and whose operation is not here any more, or never was.
CREATE TABLE retired (
  id          TEXT NOT NULL PRIMARY KEY
                   CHECK (length(id) BETWEEN 1 AND 256 AND id NOT GLOB '*[^A-Za-z0-9._:-]*'),
  action_hash BLOB CHECK (length(action_hash) = 32),
    -- Of an archived one. NULL for one taken over from a ledger of another format, whose hashes are
    -- not blinded and so are not kept.
  place       INTEGER CHECK (place > 0),
    -- Of an archived one's ending. NULL for one taken over.
  link        BLOB CHECK (length(link) = 32),    -- In that place.
  CHECK ((place IS NULL) = (link IS NULL)),
  CHECK ((place IS NULL) = (action_hash IS NULL))
) STRICT, WITHOUT ROWID;

-- A host keeps the place and link of the last receipt it got, and asks long after whether the chain
-- has them: found at the same cost however much was archived since.
CREATE INDEX retired_by_place ON retired (place) WHERE place IS NOT NULL;

-- How far a start may skip what is old. Moved on with every few hundred operations.
CREATE TABLE mark (
  only       INTEGER PRIMARY KEY CHECK (only = 1),
  place      INTEGER NOT NULL,  -- Every operation in a place below has ended or is quarantined.
  operations INTEGER NOT NULL,  -- That were ever recorded in places below.
  latest     INTEGER NOT NULL   -- The latest time recorded when it was moved last, since the last
                                -- event `clock_accepted` then.
) STRICT;

-- The triggers. INSERT OR REPLACE would remove a row without asking a trigger for removals, so the
-- insertions themselves are checked too.

CREATE TRIGGER operation_once BEFORE INSERT ON operation
WHEN EXISTS (SELECT 1 FROM operation WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM retired WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an operation id is used once'); END;

CREATE TRIGGER operation_in_order BEFORE INSERT ON operation
WHEN NEW.place IS NOT 1 + max(coalesce((SELECT max(place) FROM operation), 0),
                              coalesce((SELECT max(place) FROM ending), 0),
                              coalesce((SELECT max(place) FROM event), 0))
BEGIN SELECT RAISE(ABORT, 'an operation takes the next place in the chain'); END;

CREATE TRIGGER operation_named BEFORE INSERT ON operation
WHEN NOT EXISTS (SELECT 1 FROM authority WHERE id = NEW.authority)
  OR (NEW.helper IS NOT NULL AND NOT EXISTS (SELECT 1 FROM helper WHERE id = NEW.helper))
BEGIN SELECT RAISE(ABORT, 'an operation names an authority and a helper that are here'); END;

CREATE TRIGGER operation_fixed BEFORE UPDATE ON operation
BEGIN SELECT RAISE(ABORT, 'a claim never changes'); END;

CREATE TRIGGER operation_stays BEFORE DELETE ON operation
WHEN OLD.place >= (SELECT place FROM mark)  -- Which counts it.
  OR OLD.place > coalesce((SELECT max(about) FROM event WHERE kind = 'archived'), 0)
  OR NOT EXISTS (SELECT 1 FROM retired WHERE id = OLD.id)
  OR EXISTS (SELECT 1 FROM ending WHERE operation = OLD.place)
BEGIN SELECT RAISE(ABORT, 'nothing is removed that is not archived'); END;

-- An ending takes the next place, or fills that of an operation which was never claimed.
CREATE TRIGGER ending_in_order BEFORE INSERT ON ending
WHEN NEW.place IS NOT (SELECT (claimed_at IS NOT NULL)
                              + max(coalesce((SELECT max(place) FROM operation), 0),
                                    coalesce((SELECT max(place) FROM ending), 0),
                                    coalesce((SELECT max(place) FROM event), 0))
                       FROM operation WHERE place = NEW.operation)
  OR (NEW.place = NEW.operation) IS NOT (SELECT claimed_at IS NULL FROM operation
                                         WHERE place = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'an ending takes the next place in the chain'); END;

CREATE TRIGGER ending_once BEFORE INSERT ON ending
WHEN EXISTS (SELECT 1 FROM ending WHERE operation = NEW.operation)
  OR EXISTS (SELECT 1 FROM event WHERE kind = 'quarantined' AND about = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'an operation ends once, and never when it is quarantined'); END;

CREATE TRIGGER ending_fixed BEFORE UPDATE ON ending
BEGIN SELECT RAISE(ABORT, 'an ending never changes'); END;

CREATE TRIGGER ending_stays BEFORE DELETE ON ending
WHEN OLD.place > coalesce((SELECT max(about) FROM event WHERE kind = 'archived'), 0)
  OR NOT EXISTS (SELECT 1 FROM operation o JOIN retired USING (id)
                 WHERE o.place = OLD.operation)
BEGIN SELECT RAISE(ABORT, 'nothing is removed that is not archived'); END;

CREATE TRIGGER event_in_order BEFORE INSERT ON event
WHEN NEW.place IS NOT 1 + max(coalesce((SELECT max(place) FROM operation), 0),
                              coalesce((SELECT max(place) FROM ending), 0),
                              coalesce((SELECT max(place) FROM event), 0))
BEGIN SELECT RAISE(ABORT, 'an event takes the next place in the chain'); END;

CREATE TRIGGER event_fixed BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;

CREATE TRIGGER event_stays BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'no event is removed'); END;

CREATE TRIGGER retired_once BEFORE INSERT ON retired
WHEN EXISTS (SELECT 1 FROM retired WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM operation WHERE id = NEW.id
                                       AND (action_hash IS NOT NEW.action_hash
                                            OR place NOT IN (SELECT operation FROM ending)))
  OR (NEW.place, NEW.link) IS NOT (SELECT e.place, e.link FROM ending e
                                   JOIN operation o ON e.operation = o.place WHERE o.id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an id is retired once, as what it was, after its end'); END;

CREATE TRIGGER retired_fixed BEFORE UPDATE ON retired
BEGIN SELECT RAISE(ABORT, 'a retired id never changes'); END;

CREATE TRIGGER retired_stays BEFORE DELETE ON retired
BEGIN SELECT RAISE(ABORT, 'no id is removed'); END;

CREATE TRIGGER mark_once BEFORE INSERT ON mark
WHEN EXISTS (SELECT 1 FROM mark)
BEGIN SELECT RAISE(ABORT, 'there is one mark'); END;

CREATE TRIGGER mark_moves_on BEFORE UPDATE ON mark
WHEN NEW.place < OLD.place
  OR NEW.place > 1 + max(coalesce((SELECT max(place) FROM operation), 0),
                         coalesce((SELECT max(place) FROM ending), 0),
                         coalesce((SELECT max(place) FROM event), 0))
  OR NEW.operations IS NOT OLD.operations + (SELECT count(*) FROM operation
                                             WHERE place >= OLD.place AND place < NEW.place)
BEGIN SELECT RAISE(ABORT, 'the mark moves on and counts'); END;

CREATE TRIGGER mark_passes_what_ended BEFORE UPDATE ON mark
WHEN EXISTS (SELECT 1 FROM operation o
             WHERE o.place >= OLD.place AND o.place < NEW.place
               AND NOT EXISTS (SELECT 1 FROM ending WHERE operation = o.place)
               AND NOT EXISTS (SELECT 1 FROM event
                               WHERE kind = 'quarantined' AND about = o.place))
BEGIN SELECT RAISE(ABORT, 'the mark passes nothing that is open'); END;

CREATE TRIGGER mark_keeps_time BEFORE UPDATE ON mark
WHEN NEW.latest < OLD.latest
  AND NOT EXISTS (SELECT 1 FROM event WHERE kind = 'clock_accepted' AND place >= OLD.place)
BEGIN SELECT RAISE(ABORT, 'the mark goes back in time only when the clock was accepted'); END;

CREATE TRIGGER mark_stays BEFORE DELETE ON mark
BEGIN SELECT RAISE(ABORT, 'there is one mark'); END;

CREATE TRIGGER authority_once BEFORE INSERT ON authority
WHEN EXISTS (SELECT 1 FROM authority WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'an authority is recorded once'); END;

CREATE TRIGGER authority_fixed BEFORE UPDATE ON authority
BEGIN SELECT RAISE(ABORT, 'an authority never changes'); END;

CREATE TRIGGER authority_stays BEFORE DELETE ON authority
BEGIN SELECT RAISE(ABORT, 'no authority is removed'); END;

CREATE TRIGGER helper_once BEFORE INSERT ON helper
WHEN EXISTS (SELECT 1 FROM helper WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a helper is recorded once'); END;

CREATE TRIGGER helper_fixed BEFORE UPDATE ON helper
BEGIN SELECT RAISE(ABORT, 'a helper never changes'); END;

CREATE TRIGGER helper_stays BEFORE DELETE ON helper
BEGIN SELECT RAISE(ABORT, 'no helper is removed'); END;

CREATE TRIGGER ring_closed BEFORE INSERT ON ring
WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT RAISE(ABORT, 'the ring is pinned at creation'); END;

CREATE TRIGGER ring_fixed BEFORE UPDATE ON ring
BEGIN SELECT RAISE(ABORT, 'the ring is pinned at creation'); END;

CREATE TRIGGER ring_stays BEFORE DELETE ON ring
BEGIN SELECT RAISE(ABORT, 'the ring is pinned at creation'); END;

CREATE TRIGGER ledger_once BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT RAISE(ABORT, 'a ledger is made once'); END;

CREATE TRIGGER ledger_fixed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'a ledger is made once'); END;

CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'a ledger is made once'); END;
