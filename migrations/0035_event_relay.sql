-- Up to which position the events of each tenant are published to a stream of a message broker. The last message of the
-- stream decides, but the broker may have deleted it.

CREATE TABLE event_relay_positions (
    tenant_id uuid        NOT NULL,
    stream    text        NOT NULL COLLATE "C",
    -- Another one if the stream was deleted and created again.
    stream_id text        NOT NULL,
    position  bigint      NOT NULL,
    saved_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, stream)
);
