-- Who does a piece of background work that only one process should do at a time, and until when it
-- may. A holder that dies is replaced when its lease runs out.

CREATE TABLE task_leases (
    task        text        NOT NULL PRIMARY KEY,
    next_run_at timestamptz NOT NULL DEFAULT now(),
    held_by     uuid,
    held_until  timestamptz,
    failures    integer     NOT NULL DEFAULT 0
);
