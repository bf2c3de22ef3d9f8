/// The tables, one script a version. A released script is never edited.
enum SQLiteSchema {
    static let migrations = [
        """
        CREATE TABLE blobs(
            key TEXT PRIMARY KEY, owner TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT, verified_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX blobs_by_hash ON blobs(owner, sha256);

        CREATE TABLE items(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, shoot TEXT NOT NULL, kind TEXT, title TEXT, caption TEXT, place TEXT,
            taken_at TEXT, state TEXT NOT NULL, generation INTEGER NOT NULL, reason_code TEXT, reason_message TEXT,
            duration_ms INTEGER, aspect REAL, preview_color TEXT, facts TEXT,
            created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX items_by_owner ON items(owner, id);
        CREATE INDEX items_by_shoot ON items(owner, shoot, id);

        CREATE TABLE uploads(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, item TEXT NOT NULL, role TEXT NOT NULL, name TEXT NOT NULL,
            filename TEXT NOT NULL, content_type TEXT NOT NULL, size INTEGER, part_size INTEGER NOT NULL, sha256 TEXT,
            request_hash TEXT NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL, already_stored INTEGER NOT NULL,
            attached INTEGER NOT NULL DEFAULT 0, blob TEXT REFERENCES blobs(key), expires_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX uploads_by_item ON uploads(item);
        CREATE INDEX uploads_by_blob ON uploads(blob);
        CREATE INDEX uploads_by_expiry ON uploads(attached, state, expires_at);
        CREATE UNIQUE INDEX uploads_attached ON uploads(item, role, name) WHERE attached = 1;

        CREATE TABLE signed_parts(
            upload TEXT NOT NULL, generation INTEGER NOT NULL, number INTEGER NOT NULL, length INTEGER NOT NULL, md5 TEXT NOT NULL,
            PRIMARY KEY(upload, generation, number)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE renditions(
            item TEXT NOT NULL REFERENCES items(id), role TEXT NOT NULL, name TEXT NOT NULL,
            blob TEXT NOT NULL REFERENCES blobs(key), content_type TEXT NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
            width INTEGER, height INTEGER,
            PRIMARY KEY(item, role, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX renditions_by_blob ON renditions(blob);

        -- again: something was attached while the job ran.
        CREATE TABLE jobs(
            item TEXT PRIMARY KEY REFERENCES items(id), state TEXT NOT NULL, runnable_at INTEGER, attempts INTEGER NOT NULL,
            failures INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL, lease_until INTEGER, again INTEGER NOT NULL DEFAULT 0,
            failure_code TEXT, failure_message TEXT
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX jobs_by_time ON jobs(state, runnable_at);

        -- The primary key is what keeps a lease epoch from completing twice.
        CREATE TABLE completions(
            item TEXT NOT NULL, epoch INTEGER NOT NULL, generation INTEGER NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY(item, epoch)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE events(
            owner TEXT NOT NULL, number INTEGER NOT NULL, item TEXT NOT NULL, shoot TEXT NOT NULL, generation INTEGER NOT NULL,
            state TEXT NOT NULL, reason_code TEXT, reason_message TEXT, at INTEGER NOT NULL,
            PRIMARY KEY(owner, number)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE doomed(key TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

        CREATE TABLE tokens(
            sha256 TEXT PRIMARY KEY, owner TEXT NOT NULL, shoot TEXT, created_at INTEGER NOT NULL, expires_at INTEGER,
            revoked_at INTEGER
        ) STRICT, WITHOUT ROWID;
        """,
        """
        -- What was removed from the beginning of an owner's log, so that a gap can be told from a trimmed beginning.
        CREATE TABLE event_trims(owner TEXT PRIMARY KEY, trimmed_to INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        """,
        """
        -- The store's own name for the session of this generation.
        ALTER TABLE uploads ADD COLUMN store_name TEXT;
        -- Below which name this ledger's objects lie in a bucket that others may use too. One row.
        CREATE TABLE store_prefix(prefix TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        -- For people, who never see a token a second time.
        ALTER TABLE tokens ADD COLUMN name TEXT;
        CREATE INDEX uploads_by_state ON uploads(state, id);
        """,
        """
        -- The one that it was opened for, for tokens that are for one shoot; earlier uploads have it from their items.
        ALTER TABLE uploads ADD COLUMN shoot TEXT;
        CREATE UNIQUE INDEX tokens_by_name ON tokens(name);
        """,
        """
        -- Of uploads that come in through this server, from foreign clients: what they said of the file, and the state of the running SHA-256 over
        -- the parts in signed_parts, which are all in the store.
        CREATE TABLE tus(
            upload TEXT PRIMARY KEY REFERENCES uploads(id), metadata TEXT NOT NULL, hash TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """,
        """
        -- Verified once, and then not found or not as it was: kept until what this upload brings in its place is verified.
        ALTER TABLE blobs ADD COLUMN suspect_of TEXT;
        CREATE INDEX blobs_suspect ON blobs(suspect_of) WHERE suspect_of IS NOT NULL;
        -- Sessions that have ended here and may still be there at the store, by its own names for them; empty where it gives none.
        CREATE TABLE doomed_sessions(
            upload TEXT NOT NULL, generation INTEGER NOT NULL, store_name TEXT NOT NULL,
            PRIMARY KEY(upload, generation, store_name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX uploads_open ON uploads(owner) WHERE state = 'open';
        """,
    ]
}
