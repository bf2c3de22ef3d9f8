/// The box's durable state. Migrations run in order, each once; a published one is never edited.
enum CatalogSchema {
    static let migrations = [
        """
        CREATE TABLE item(
            id TEXT PRIMARY KEY,
            shoot TEXT NOT NULL,
            name TEXT NOT NULL,
            source BLOB NOT NULL,
            source_size INTEGER NOT NULL,
            source_modified INTEGER NOT NULL,
            is_moved INTEGER NOT NULL,
            prepare TEXT NOT NULL,
            title TEXT, caption TEXT, place TEXT,
            state TEXT NOT NULL,
            intent TEXT NOT NULL DEFAULT 'run',
            waiting TEXT,
            reason_code TEXT, reason_message TEXT,
            is_retryable INTEGER NOT NULL DEFAULT 0,
            generation INTEGER NOT NULL DEFAULT 1,
            attempts INTEGER NOT NULL DEFAULT 0,
            kind TEXT,
            probe TEXT,
            document TEXT,
            created INTEGER NOT NULL
        );
        CREATE INDEX item_by_source ON item(source);
        CREATE INDEX item_by_state ON item(state);
        CREATE TABLE file(
            item TEXT NOT NULL REFERENCES item(id),
            role TEXT NOT NULL,
            name TEXT NOT NULL,
            source BLOB,
            source_size INTEGER,
            source_modified INTEGER,
            source_removed INTEGER NOT NULL DEFAULT 0,
            path TEXT NOT NULL UNIQUE,
            content_type TEXT NOT NULL,
            state TEXT NOT NULL,
            bytes INTEGER,
            sha256 TEXT,
            ends TEXT,
            PRIMARY KEY(item, role, name)
        ) WITHOUT ROWID;
        CREATE INDEX file_by_bytes ON file(bytes) WHERE role = 'original';
        CREATE TABLE upload(
            id TEXT PRIMARY KEY,
            item TEXT NOT NULL REFERENCES item(id),
            role TEXT NOT NULL,
            name TEXT NOT NULL,
            state TEXT NOT NULL,
            generation INTEGER NOT NULL DEFAULT 0,
            part_size INTEGER NOT NULL,
            confirmed_sha256 TEXT,
            UNIQUE(item, role, name)
        );
        CREATE TABLE part(
            upload TEXT NOT NULL REFERENCES upload(id),
            number INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            etag TEXT,
            PRIMARY KEY(upload, number)
        ) WITHOUT ROWID;
        """,
        // The backend keeps a tombstone of an item that was cancelled; it has to be asked to bring the item back.
        "ALTER TABLE item ADD COLUMN was_deleted INTEGER NOT NULL DEFAULT 0",
        // The backend that its bytes go to, as `IngestSettings.serverName`.
        "ALTER TABLE item ADD COLUMN server TEXT",
        """
        -- Each item's story, for people; written with the steps that it tells of.
        CREATE TABLE history(
            item TEXT NOT NULL REFERENCES item(id),
            number INTEGER NOT NULL,
            at INTEGER NOT NULL,
            entry TEXT NOT NULL,
            PRIMARY KEY(item, number)
        ) WITHOUT ROWID;
        ALTER TABLE part ADD COLUMN at INTEGER;
        -- Does not wait for better conditions.
        ALTER TABLE item ADD COLUMN is_urgent INTEGER NOT NULL DEFAULT 0;
        -- For hash lists that travel with copies of the card: where a file lay below the folder that was picked.
        ALTER TABLE file ADD COLUMN xxh128 TEXT;
        ALTER TABLE file ADD COLUMN hashed_at INTEGER;
        ALTER TABLE file ADD COLUMN card BLOB;
        ALTER TABLE file ADD COLUMN below BLOB;
        """,
        // A person has asked for it, and not an inbox.
        "ALTER TABLE item ADD COLUMN is_asked INTEGER NOT NULL DEFAULT 0",
        // The same bytes under another name.
        "CREATE INDEX file_by_hash ON file(sha256)",
    ]
}
