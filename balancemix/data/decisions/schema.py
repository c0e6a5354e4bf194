"""The tables of a store of decisions, as SQL.

Every table but `label_state` and `meta` only grows. `label_state` repeats what follows from the
others, so that a single label is looked up at once.
"""

VERSION = 1  # of the tables; a store with a higher one was written by a newer balancemix
APPLICATION = 0x626D7278  # "bmrx": marks the file as a store of balancemix

VERDICTS = ("present", "absent", "unsure")
MODES = ("focus", "sweep", "settle", "resolve", "file")

_TABLES = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE image(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT, bytes INTEGER,
  mtime_ns INTEGER);
CREATE TABLE class(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE reviewer(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE);
CREATE TABLE palette(id INTEGER PRIMARY KEY, classes TEXT NOT NULL UNIQUE);
CREATE TABLE snapshot(id INTEGER PRIMARY KEY, made_at TEXT NOT NULL, source TEXT NOT NULL,
  fingerprint TEXT NOT NULL, judge TEXT NOT NULL, seed INTEGER NOT NULL, expected_wrong REAL,
  expected_missing REAL, digest TEXT NOT NULL);
CREATE TABLE band(snapshot INTEGER NOT NULL REFERENCES snapshot(id), side TEXT NOT NULL,
  band INTEGER NOT NULL, labels INTEGER NOT NULL, sum_p REAL NOT NULL,
  PRIMARY KEY(snapshot, side, band)) WITHOUT ROWID;
CREATE TABLE finding(snapshot INTEGER NOT NULL REFERENCES snapshot(id),
  image INTEGER NOT NULL REFERENCES image(id), class INTEGER NOT NULL REFERENCES class(id),
  problem TEXT NOT NULL, given INTEGER NOT NULL, suggested INTEGER NOT NULL, p REAL NOT NULL,
  probe INTEGER NOT NULL, PRIMARY KEY(snapshot, image, class)) WITHOUT ROWID;
CREATE INDEX finding_order ON finding(snapshot, class, problem, p DESC);
CREATE TABLE sample(id INTEGER PRIMARY KEY, made_at TEXT NOT NULL, seed INTEGER NOT NULL,
  unit TEXT NOT NULL CHECK(unit IN ('image', 'label')), strata TEXT NOT NULL);
CREATE TABLE sample_unit(sample INTEGER NOT NULL REFERENCES sample(id), position INTEGER NOT NULL,
  image INTEGER NOT NULL REFERENCES image(id), class INTEGER REFERENCES class(id),
  stratum INTEGER NOT NULL, PRIMARY KEY(sample, position)) WITHOUT ROWID;
CREATE INDEX sample_unit_image ON sample_unit(image);
CREATE TABLE reading(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, path TEXT NOT NULL,
  digest TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE decision(seq INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL UNIQUE,
  reviewer INTEGER NOT NULL REFERENCES reviewer(id), image INTEGER NOT NULL REFERENCES image(id),
  class INTEGER NOT NULL REFERENCES class(id),
  verdict TEXT NOT NULL CHECK(verdict IN {(*VERDICTS, "undone")}),
  undoes INTEGER REFERENCES decision(seq), mode TEXT NOT NULL CHECK(mode IN {MODES}),
  batch TEXT, snapshot INTEGER REFERENCES snapshot(id), suggested INTEGER, p REAL,
  probe INTEGER NOT NULL, width INTEGER, whole INTEGER NOT NULL, ms INTEGER, at TEXT NOT NULL);
CREATE INDEX decision_label ON decision(image, class, seq);
CREATE INDEX decision_batch ON decision(batch) WHERE batch IS NOT NULL;
CREATE INDEX decision_reviewer ON decision(reviewer, seq);
CREATE TABLE settled(seq INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL UNIQUE,
  after INTEGER NOT NULL, undoes INTEGER REFERENCES settled(seq),
  image INTEGER NOT NULL REFERENCES image(id), reviewer INTEGER NOT NULL REFERENCES reviewer(id),
  mode TEXT NOT NULL CHECK(mode IN {MODES}), sample INTEGER REFERENCES sample(id),
  shown INTEGER NOT NULL REFERENCES palette(id), ms INTEGER, at TEXT NOT NULL);
CREATE INDEX settled_image ON settled(image, seq);
CREATE TABLE passed(reviewer INTEGER NOT NULL REFERENCES reviewer(id),
  image INTEGER NOT NULL REFERENCES image(id), class INTEGER NOT NULL REFERENCES class(id),
  at TEXT NOT NULL, PRIMARY KEY(reviewer, image, class)) WITHOUT ROWID;
CREATE TABLE rule(seq INTEGER PRIMARY KEY AUTOINCREMENT,
  class INTEGER NOT NULL REFERENCES class(id), text TEXT NOT NULL,
  reviewer INTEGER NOT NULL REFERENCES reviewer(id), at TEXT NOT NULL);
CREATE TABLE label_state(image INTEGER NOT NULL, class INTEGER NOT NULL, state TEXT NOT NULL,
  verdict TEXT, verified INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(image, class))
  WITHOUT ROWID;
"""
# Tables that only grow: for each, `meta` keeps the number of rows and the sum of their checksums.
LOGS = (
    *("image", "class", "reviewer", "palette", "snapshot", "band", "finding", "sample"),
    *("sample_unit", "reading", "decision", "settled", "passed", "rule"),
)
_TRIGGERS = "".join(
    f"CREATE TRIGGER {table}_{action.lower()} BEFORE {action} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} only grows'); END;\n"
    for table in LOGS
    for action in ("UPDATE", "DELETE")
)
SCHEMA = (
    f"{_TABLES}{_TRIGGERS}PRAGMA user_version={VERSION};\nPRAGMA application_id={APPLICATION};\n"
)
