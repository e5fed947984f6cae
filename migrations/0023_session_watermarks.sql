-- Ends many sessions with one row: a session is refused if its number is less than that of a watermark of its user,
-- issuer, tenant or installation. Numbers come from a sequence and not from a clock, so that the order of a sign-in and
-- a watermark is never in doubt. Sessions from before this migration have the number 0.

CREATE SEQUENCE session_numbers;

ALTER TABLE sessions ADD COLUMN number bigint NOT NULL DEFAULT 0;

CREATE TABLE session_watermarks (
    -- The nil UUID for the watermark of the installation, which has one in every cell.
    tenant_id           uuid        NOT NULL,
    -- 'installation', 'tenant', 'issuer:' and the issuer, or 'user:' and the user's id.
    scope               text        NOT NULL COLLATE "C",
    -- The number of the first session that is not ended by the watermark.
    sessions_valid_from bigint      NOT NULL,
    -- A session of the user that the watermark does not end.
    except_session      uuid,
    reason              text        NOT NULL,
    -- Who ran the command that set it.
    operator            text,
    set_at              timestamptz NOT NULL,
    -- Housekeeping: sessions up to this id are done, how many of them were ended, and when the last one was done.
    cleaned_up_to       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    ended               bigint      NOT NULL DEFAULT 0,
    cleaned_at          timestamptz,
    PRIMARY KEY (tenant_id, scope)
);

CREATE INDEX session_watermarks_cleaned ON session_watermarks (cleaned_at);

-- In seconds. At most a year; at least twice the lifetime of an access token, because clients refresh that often.
ALTER TABLE tenants ADD COLUMN session_idle_timeout integer NOT NULL DEFAULT 1209600
    CHECK (session_idle_timeout BETWEEN 1800 AND 31536000);
ALTER TABLE tenants ADD COLUMN session_absolute_timeout integer NOT NULL DEFAULT 2592000
    CHECK (session_absolute_timeout BETWEEN 1800 AND 31536000);
