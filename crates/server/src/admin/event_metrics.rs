//! Help texts of the metrics of the event log, webhooks and the relay.

pub(super) fn describe() {
    describe_event_log_metrics();
    describe_webhook_metrics();
    describe_relay_metrics();
}

fn describe_event_log_metrics() {
    metrics::describe_counter!(
        "perennial_events_numbered_total",
        "Events that received a position in the event log, by cell"
    );
    metrics::describe_gauge!(
        "perennial_event_log_behind_seconds",
        "Seconds for which events have been waiting for a position in the event log, by cell; 0: none waits"
    );
    metrics::describe_counter!(
        "perennial_event_log_epochs_total",
        "New epochs of the event log, by cell: the database was restored, or a standby was promoted"
    );
}

fn describe_webhook_metrics() {
    metrics::describe_gauge!(
        "perennial_task_held_items",
        "Items whose lease this process holds, by task"
    );
    metrics::describe_counter!(
        "perennial_webhook_attempts_total",
        "Webhook requests, by outcome (delivered, failed)"
    );
    metrics::describe_histogram!(
        "perennial_webhook_attempt_seconds",
        "Seconds from the start of a webhook request to the end of its response"
    );
    metrics::describe_counter!(
        "perennial_webhook_events_given_up_total",
        "Events that an endpoint did not receive within all attempts"
    );
    metrics::describe_counter!(
        "perennial_webhook_attempts_dropped_total",
        "Webhook attempts that were not logged, because the database was too slow"
    );
    metrics::describe_counter!(
        "perennial_webhook_endpoints_disabled_total",
        "Webhook endpoints that were disabled automatically, by reason (failures, gone)"
    );
    metrics::describe_gauge!(
        "perennial_webhook_endpoints_failing",
        "Enabled webhook endpoints for which all attempts have failed for an hour, by cell"
    );
    metrics::describe_gauge!(
        "perennial_webhook_behind_seconds",
        "Seconds for which the oldest event has been waiting for its first attempt, by cell; 0: none waits"
    );
    metrics::describe_gauge!(
        "perennial_webhook_requests_in_flight",
        "Webhook requests without a response yet, by cell"
    );
}

fn describe_relay_metrics() {
    metrics::describe_counter!(
        "perennial_relay_events_total",
        "Events that `perennial relay` has published, by cell"
    );
    metrics::describe_gauge!(
        "perennial_relay_pending_events",
        "Positions of the event log that the relay has not published yet, by cell"
    );
    metrics::describe_counter!(
        "perennial_relay_failures_total",
        "How often the relay stopped with an error and tried again, by cell"
    );
    metrics::describe_gauge!(
        "perennial_relay_diverged_tenants",
        "Tenants that are not relayed, because the stream contains another history, by cell"
    );
}
