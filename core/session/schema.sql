-- The session file, schema version 3. One step after another on one event axis: every op, every
-- constant that comes into being and every release of a storage has a `seq` on it.
PRAGMA application_id = 0x4857544d;  -- "HWTM"
PRAGMA user_version = 3;

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE processes (
    id INTEGER PRIMARY KEY, pid INTEGER, command TEXT, host TEXT, started_ns INTEGER,
    framework TEXT, framework_version TEXT, rank INTEGER NOT NULL DEFAULT 0,
    exit_status INTEGER);
-- Processes that are ranks of a distributed training. Sessions of version 2 may lack the table.
CREATE TABLE ranks (
    process INTEGER PRIMARY KEY REFERENCES processes(id),
    world_size INTEGER,                  -- processes of the whole training; NULL: not told
    run TEXT NOT NULL,                   -- the same for all its ranks; '': not told
    clock_offset_ns INTEGER,             -- in a joined session: what the process's times were moved
    clock_error_ns INTEGER);             -- by, and how sure that is
CREATE TABLE devices (
    id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes(id),
    kind TEXT NOT NULL, ordinal INTEGER NOT NULL DEFAULT 0, name TEXT, capacity_bytes INTEGER);

-- A row is inserted when the step is complete; what has no step row is unfinished and is not shown.
-- The n-th process, from 0, has its seqs and the ids of its ops, storages and tensors from n * 2^40
-- on: what lives in a step lies in the block of the step's process.
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,              -- recorded steps count from 0
    process INTEGER NOT NULL REFERENCES processes(id),
    first_seq INTEGER NOT NULL,          -- events with first_seq <= seq < end_seq belong to the step
    end_seq INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL DEFAULT 0, -- monotonic clock of the process
    end_ns INTEGER NOT NULL DEFAULT 0,
    allocator_begin_bytes INTEGER,       -- the allocator's own figures, where it could be asked
    allocator_peak_bytes INTEGER,
    environment TEXT);                   -- JSON: threads, default dtype, …

-- Generator states at the first op of the step that uses them. generator 0 is the default one.
CREATE TABLE generators (
    step INTEGER NOT NULL, generator INTEGER NOT NULL, device TEXT NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (step, generator)) WITHOUT ROWID;

CREATE TABLE layers (
    id INTEGER PRIMARY KEY, parent INTEGER REFERENCES layers(id), path TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL DEFAULT '');

CREATE TABLE ops (
    id INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL UNIQUE,
    name TEXT NOT NULL,                  -- "aten::convolution"
    overload TEXT NOT NULL DEFAULT '',
    phase TEXT NOT NULL DEFAULT 'unknown',
    layer INTEGER REFERENCES layers(id),
    thread INTEGER NOT NULL DEFAULT 0,
    begin_ns INTEGER NOT NULL DEFAULT 0,
    duration_ns INTEGER NOT NULL DEFAULT 0,
    device_ns INTEGER,                   -- of its kernels, where it launched any: then what it costs
    workspace_bytes INTEGER NOT NULL DEFAULT 0,
    live_bytes INTEGER,                  -- the allocator's live bytes right before the op
    measured_ns INTEGER,                 -- from a profile run of the executor
    measured_workspace_bytes INTEGER,
    random INTEGER NOT NULL DEFAULT 0,
    args TEXT);                          -- JSON, see core/session/session.h

CREATE TABLE storages (
    id INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL,
    device TEXT NOT NULL DEFAULT 'cpu',
    category TEXT NOT NULL DEFAULT 'unknown',
    layer INTEGER REFERENCES layers(id),
    creator INTEGER REFERENCES ops(id),  -- NULL: no recorded op made it
    alloc_seq INTEGER NOT NULL,          -- seq of its creator, or its own place
    free_seq INTEGER,                    -- NULL: alive when the recording ended
    address INTEGER,
    recorded_category TEXT);             -- where category rules set another; NULL: as recorded
CREATE INDEX storages_alloc ON storages(alloc_seq);
CREATE INDEX storages_free ON storages(free_seq);

CREATE TABLE tensors (
    id INTEGER PRIMARY KEY,
    storage INTEGER NOT NULL REFERENCES storages(id),
    creator INTEGER REFERENCES ops(id),  -- first op that returned it; NULL: came with a constant
    dtype TEXT, sizes TEXT, strides TEXT, -- JSON arrays of elements
    offset INTEGER NOT NULL DEFAULT 0);  -- elements
CREATE INDEX tensors_storage ON tensors(storage);

CREATE TABLE op_inputs (
    op INTEGER NOT NULL, position INTEGER NOT NULL, tensor INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (op, position)) WITHOUT ROWID;
CREATE TABLE op_outputs (
    op INTEGER NOT NULL, position INTEGER NOT NULL, tensor INTEGER NOT NULL,
    makes_storage INTEGER NOT NULL, PRIMARY KEY (op, position)) WITHOUT ROWID;
CREATE TABLE op_writes (
    op INTEGER NOT NULL, storage INTEGER NOT NULL, version_before INTEGER NOT NULL,
    PRIMARY KEY (op, storage)) WITHOUT ROWID;

-- Steps of which nothing changes any more, packed (core/session/packed_step.h): their ops with
-- inputs, outputs, writes and call stacks, the storages that came and went in them, and the tensors
-- of these have no rows in the tables above. What outlives the step has. Since version 3.
CREATE TABLE packed_steps (step INTEGER PRIMARY KEY, data BLOB NOT NULL);

-- Tensors alive when the step ends.
CREATE TABLE final_tensors (
    step INTEGER NOT NULL, position INTEGER NOT NULL, tensor INTEGER NOT NULL,
    PRIMARY KEY (step, position)) WITHOUT ROWID;

-- Bytes of a constant as they were at the start of the step.
CREATE TABLE contents (
    step INTEGER NOT NULL, storage INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (step, storage)) WITHOUT ROWID;

-- Allocation signature of an op from a profile run: its allocations in order.
CREATE TABLE signatures (
    op INTEGER NOT NULL, position INTEGER NOT NULL, bytes INTEGER NOT NULL,
    output INTEGER,                      -- index of the result that lives in it; NULL: workspace
    begin_event INTEGER NOT NULL,        -- order of allocations and frees inside the op
    end_event INTEGER,
    PRIMARY KEY (op, position)) WITHOUT ROWID;
CREATE TABLE implementations (
    op INTEGER NOT NULL, name TEXT NOT NULL, duration_ns INTEGER NOT NULL,
    workspace_bytes INTEGER NOT NULL, PRIMARY KEY (op, name)) WITHOUT ROWID;
-- Those that change more than time and workspace, as a menu (docs/menu.md), and the allocation
-- signatures under an implementation: of its op, and of the gradient op that changes with it.
-- Sessions of version 2 may lack both tables.
CREATE TABLE menus (step INTEGER PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE implementation_signatures (
    op INTEGER NOT NULL, name TEXT NOT NULL,
    of INTEGER NOT NULL,                 -- the op that makes the allocations
    position INTEGER NOT NULL,           -- -1: a row that tells that there is a signature
    bytes INTEGER NOT NULL, output INTEGER, begin_event INTEGER NOT NULL, end_event INTEGER,
    PRIMARY KEY (op, name, of, position)) WITHOUT ROWID;

-- Memory events of an allocator or the driver, in blocks in the order of their arrival
-- (core/session/memory_chunk.h); `highwater export --to csv` writes them out one a line.
CREATE TABLE memory_chunks (
    first_event INTEGER PRIMARY KEY,     -- events count from 0
    count INTEGER NOT NULL,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, -- earliest and latest; 0: without times
    data BLOB NOT NULL);
CREATE INDEX memory_chunks_time ON memory_chunks(end_ns, begin_ns);
CREATE TABLE kernels (
    id INTEGER PRIMARY KEY, device INTEGER, stream INTEGER, name TEXT NOT NULL,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, op INTEGER, correlation INTEGER);
CREATE TABLE copies (
    id INTEGER PRIMARY KEY, device INTEGER, stream INTEGER, kind TEXT NOT NULL,
    bytes INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, op INTEGER);

-- Spans of host time that a GPU recording brings: NVTX ranges of the program, its waits for the
-- device ('sync'), and the work of CUPTI and the driver ('overhead'). Sessions of version 2 may lack
-- the table.
CREATE TABLE ranges (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, thread INTEGER,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);

-- Python call stacks: a tree that begins with the outermost frames. Sessions recorded without stacks
-- lack the rows, those of version 2 perhaps the tables.
CREATE TABLE source_frames (
    id INTEGER PRIMARY KEY, file TEXT NOT NULL, function TEXT NOT NULL, line INTEGER NOT NULL,
    framework INTEGER NOT NULL);         -- 1: of the framework's own code, not of the program
CREATE TABLE stacks (
    id INTEGER PRIMARY KEY,              -- ends in this frame, its innermost one
    parent INTEGER REFERENCES stacks(id), frame INTEGER NOT NULL REFERENCES source_frames(id));
CREATE TABLE op_stacks (                 -- of a backward op: of the forward op whose gradient it is
    op INTEGER PRIMARY KEY, stack INTEGER NOT NULL REFERENCES stacks(id));
CREATE TABLE storage_stacks (            -- of allocations that no recorded op made
    storage INTEGER PRIMARY KEY, stack INTEGER NOT NULL REFERENCES stacks(id));

CREATE TABLE gaps (
    id INTEGER PRIMARY KEY, step INTEGER, begin_ns INTEGER, end_ns INTEGER,
    what TEXT NOT NULL, why TEXT NOT NULL);

-- Numeric series over one axis and their min/max/argmax pyramid: level 0 has the finest buckets
-- (core/session/series_writer.h). x: 'time_ns', 'seq', or 'event' (memory events from 0).
CREATE TABLE series (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, axis TEXT NOT NULL,
    step INTEGER, device INTEGER);
CREATE TABLE series_buckets (
    series INTEGER NOT NULL, level INTEGER NOT NULL, bucket INTEGER NOT NULL,
    begin INTEGER NOT NULL, end INTEGER NOT NULL, -- x of the first and the last sample
    minimum INTEGER NOT NULL, maximum INTEGER NOT NULL, argmax INTEGER NOT NULL, -- x
    count INTEGER NOT NULL,              -- samples
    PRIMARY KEY (series, level, bucket)) WITHOUT ROWID;
CREATE TABLE series_blocks (
    series INTEGER NOT NULL, block INTEGER NOT NULL, count INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (series, block));

CREATE TABLE plans (
    id INTEGER PRIMARY KEY, step INTEGER NOT NULL, created_ns INTEGER NOT NULL,
    planner TEXT NOT NULL, budget_bytes INTEGER NOT NULL, peak_bytes INTEGER NOT NULL,
    time_ns INTEGER NOT NULL, overhead REAL NOT NULL, recomputed_ops INTEGER NOT NULL,
    lower_bound_ns INTEGER, solve_seconds REAL NOT NULL, document TEXT NOT NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, plan INTEGER REFERENCES plans(id), step INTEGER NOT NULL,
    created_ns INTEGER NOT NULL, device TEXT NOT NULL, predicted_peak_bytes INTEGER NOT NULL,
    measured_peak_bytes INTEGER NOT NULL, arena_bytes INTEGER, time_ns INTEGER NOT NULL,
    baseline_time_ns INTEGER NOT NULL, outputs_compared INTEGER NOT NULL,
    outputs_different INTEGER NOT NULL, outputs_nonfinite INTEGER NOT NULL, details TEXT);
