//! The event log: each committed event receives one position, and readers find it there.

use std::time::{Duration, Instant};

use perennial::{
    auth::tenants,
    events::{
        log::{self, EventFilter},
        view::EventView,
    },
};
use perennial_domain::{EventKind, EventTypePattern, EventTypes, Id};

use super::log_fixture::*;
use crate::{
    harness::{
        database::{Database, connect},
        process::{Process, sandbox},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn logged_events_have_positions_actors_and_previous_values() {
    let service = Service::start_in_process().await;
    let (client, value) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &value);
    let plan = api
        .create("/subscription-plans", &minimal_plan("pro"))
        .await;
    let path = "/subscription-plans/pro";
    assert_eq!(api.put(path, r#"{"tier": 7}"#).await.status, 200);
    let database = open(&service.database.url);
    let _sequencer = start_sequencer(&database);
    let admin = service.database.connect().await;
    wait_until_numbered(&admin, LIMIT).await;

    let mut connection = database.connection().await.unwrap();
    let tenant = tenants::table::list(&connection).await.unwrap()[0].0.id;
    let all = EventFilter::default();
    let page = log::read_after(&mut connection, tenant, 0, &all, 100)
        .await
        .unwrap();
    let views: Vec<serde_json::Value> = { page.events.iter() }
        .map(|event| serde_json::to_value(EventView::from(event)).unwrap())
        .collect();
    // Events of operators have positions but are not shown.
    let types: Vec<&str> = views
        .iter()
        .map(|view| view["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["plan.created", "plan.updated"]);
    assert!(page.events[0].position > 1, "tenant.created is before it");
    assert_eq!(page.read_to, page.last_position);
    let updated = &views[1];
    assert_eq!(updated["subject_id"], plan["id"]);
    assert_eq!(
        updated["actor"],
        serde_json::json!({"type": "client", "id": client})
    );
    assert_eq!(updated["data"]["tier"], 7);
    assert_eq!(updated["data"].get("previous"), None);
    assert_eq!(updated["previous"]["tier"], plan["tier"]);
    assert_eq!(views[0].get("previous"), None);
    assert!(updated["request_id"].is_string());

    let only = |kinds: &[EventKind], subject| EventFilter {
        types: EventTypes::new(kinds.iter().copied().map(EventTypePattern::Kind).collect()),
        subject,
    };
    let plans = EventFilter {
        types: EventTypes::new(vec!["plan.*".parse().unwrap()]),
        subject: None,
    };
    let subject = page.events[0].subject;
    let other = Some(page.events[0].id.uuid());
    for (filter, expected) in [
        (plans, 2),
        (only(&[EventKind::PlanUpdated], None), 1),
        (
            only(
                &[EventKind::PlanUpdated, EventKind::PlanCreated],
                Some(subject),
            ),
            2,
        ),
        (only(&[], Some(subject)), 2),
        (only(&[], other), 0),
        (only(&[EventKind::TenantCreated], None), 0),
    ] {
        let page = log::read_after(&mut connection, tenant, 0, &filter, 100)
            .await
            .unwrap();
        assert_eq!(page.events.len(), expected, "{filter:?}");
        assert_eq!(page.read_to, page.last_position);
    }
    // A full page ends at its last event.
    let page = log::read_after(&mut connection, tenant, 0, &all, 1)
        .await
        .unwrap();
    assert_eq!(
        (page.events.len(), page.read_to),
        (1, page.events[0].position)
    );
}

/// A rare type is found in steps that each read a limited part of the log.
#[tokio::test]
async fn rare_type_is_found_in_bounded_steps() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    admin
        .batch_execute(&insert_events(12_000, 1))
        .await
        .unwrap();
    let rare = insert_events(1, 1).replace("plan.updated", "plan.deleted");
    admin.batch_execute(&rare).await.unwrap();
    let database = open(&test_database.url);
    let _sequencer = start_sequencer(&database);
    wait_until_numbered(&admin, LIMIT).await;
    let filter = EventFilter {
        types: EventTypes::new(vec![EventTypePattern::Kind(EventKind::PlanDeleted)]),
        subject: None,
    };
    let mut connection = database.connection().await.unwrap();
    let (mut after, mut steps) = (0, Vec::new());
    loop {
        let page = log::read_after(&mut connection, tenant(0), after, &filter, 10)
            .await
            .unwrap();
        steps.push((page.events.len(), page.read_to));
        after = page.read_to;
        if page.read_to == page.last_position {
            break;
        }
    }
    assert_eq!(steps, [(0, 5_000), (0, 10_000), (1, 12_001)]);
}

/// While instances of two versions run, the older one does not pass a type that it does not know and that a pattern
/// selects.
#[tokio::test]
async fn unknown_type_ends_the_page_of_a_pattern_that_selects_it() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    for kind in ["plan.updated", "plan.archived", "plan.updated"] {
        let insert = insert_events(1, 1).replace("plan.updated", kind);
        admin.batch_execute(&insert).await.unwrap();
    }
    let database = open(&test_database.url);
    let _sequencer = start_sequencer(&database);
    wait_until_numbered(&admin, LIMIT).await;
    let mut connection = database.connection().await.unwrap();
    for (patterns, events, read_to) in [
        (&[][..], 1, 1),
        (&["plan.*"], 1, 1),
        (&["plan.deleted", "plan.*"], 1, 1),
        (&["plan.updated"], 2, 3),
        (&["user.*"], 0, 3),
    ] {
        let types = patterns.iter().map(|text| text.parse().unwrap());
        let filter = EventFilter {
            types: EventTypes::new(types.collect()),
            subject: None,
        };
        let page = log::read_after(&mut connection, tenant(0), 0, &filter, 10).await;
        let page = page.unwrap();
        assert_eq!(
            (page.events.len(), page.read_to),
            (events, read_to),
            "{patterns:?}"
        );
    }
}

/// A long transaction delays its own events only. They are after those that were committed before them.
#[tokio::test]
async fn open_transaction_delays_only_its_own_events() {
    let test_database = Database::create().await;
    let database = open(&test_database.url);
    let _sequencer = start_sequencer(&database);
    let admin = test_database.connect().await;
    let mut writer = test_database.connect().await;
    let open_transaction = writer.transaction().await.unwrap();
    open_transaction
        .batch_execute(&insert_events(1, 1))
        .await
        .unwrap();
    // In another database of the cluster, for the whole test.
    let other_database = Database::empty().await;
    let other = other_database.connect().await;
    let open_elsewhere = "BEGIN; CREATE TABLE t (); SELECT pg_current_xact_id()";
    other.batch_execute(open_elsewhere).await.unwrap();

    let mut reader = LogReader::new(tenant(0));
    for round in 1..=20 {
        let started = Instant::now();
        admin.batch_execute(&insert_events(1, 1)).await.unwrap();
        wait_until("the event is readable", LIMIT, async || {
            reader.read(&database).await.unwrap();
            reader.position == round
        })
        .await;
        assert!(started.elapsed() < Duration::from_secs(5));
    }
    open_transaction.commit().await.unwrap();
    wait_until("the late event is readable", LIMIT, async || {
        reader.read(&database).await.unwrap();
        reader.position == 21
    })
    .await;
    assert_log_is_complete(&admin).await;
    other.batch_execute("ROLLBACK").await.unwrap();
}

/// More events than one transaction numbers, while others are recorded.
#[tokio::test]
async fn many_events_are_numbered_in_pages() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    let mut writer = test_database.connect().await;
    // An event with a low `seq` that is committed after the first page.
    let late = writer.transaction().await.unwrap();
    let late_events = insert_events(3, 3).replace("plan.updated", "plan.created");
    late.batch_execute(&late_events).await.unwrap();
    admin
        .batch_execute(&insert_events(50_000, 3))
        .await
        .unwrap();
    let database = open(&test_database.url);
    let sequencer = start_sequencer(&database);
    let paging = "SELECT count(*) > 0 FROM event_log_state WHERE target_snapshot IS NOT NULL";
    wait_until("the first page is numbered", LIMIT, async || {
        admin.query_one(paging, &[]).await.unwrap().get(0)
    })
    .await;
    // Stopped in the middle, and continued by another one.
    drop(sequencer);
    late.commit().await.unwrap();
    admin.batch_execute(&insert_events(100, 3)).await.unwrap();
    let _sequencer = start_sequencer(&open(&test_database.url));
    wait_until_numbered(&admin, Duration::from_secs(30)).await;
    assert_eq!(assert_log_is_complete(&admin).await, 50_103 + 1);
    let unordered = "SELECT count(*) FROM (
            SELECT seq < lag(seq) OVER (PARTITION BY event_log.tenant_id ORDER BY position) AS is_unordered
            FROM event_log JOIN events ON events.id = event_id WHERE event_log.kind = 'plan.updated') AS entry WHERE is_unordered";
    let row = admin.query_one(unordered, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

/// Leases normally prevent it. Each transaction fails if another one has changed the state.
#[tokio::test]
async fn concurrent_sequencers_number_each_event_once() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    let databases = [(); 3].map(|()| open(&test_database.url));
    let _sequencers = [0, 1, 2].map(|index| start_sequencer(&databases[index]));
    for _ in 0..150 {
        admin.batch_execute(&insert_events(7, 3)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    wait_until_numbered(&admin, Duration::from_secs(30)).await;
    assert_eq!(assert_log_is_complete(&admin).await, 150 * 7 + 1);
}

#[tokio::test]
async fn another_process_takes_over_within_seconds() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    let database = open(&test_database.url);
    let variables = sandbox(&test_database.url);
    let holder =
        "SELECT count(*) FROM task_leases WHERE task = 'events.sequence' AND held_until > now()";
    let mut first = Process::spawn(&variables, &["work"]);
    wait_until("the sequencer runs", LIMIT, async || {
        admin.query_one(holder, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let _second = Process::spawn(&variables, &["work"]);
    let mut reader = LogReader::new(tenant(0));
    tokio::time::sleep(Duration::from_secs(2)).await;
    first.kill();
    admin.batch_execute(&insert_events(1, 1)).await.unwrap();
    let waited = wait_until("the event is readable", LIMIT, async || {
        reader.read(&database).await.unwrap();
        reader.position == 1
    })
    .await;
    println!("took over after {waited:?}");
    assert!(waited < Duration::from_secs(6), "{waited:?}");
}

/// Events move from the default partition to that of their month while they are read.
#[tokio::test]
async fn partition_moves_during_reads_hide_no_event() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    let database = open(&test_database.url);
    let _sequencer = start_sequencer(&database);
    let reading = tokio::spawn({
        let database = database.clone();
        async move {
            let mut rounds = 0_u32;
            let until = Instant::now() + Duration::from_secs(4);
            while Instant::now() < until {
                // Rereads everything each time.
                match LogReader::new(tenant(0)).read(&database).await {
                    Ok(_) => rounds += 1,
                    Err(error) => {
                        // The move holds its lock for longer than the lock timeout.
                        assert!(error.to_string().contains("lock timeout"), "{error}");
                    }
                }
            }
            rounds
        }
    });
    let mut month = 0;
    while !reading.is_finished() {
        month += 1;
        let old = insert_events(50, 1).replace(
            "now()",
            &format!("timestamptz '2000-01-15Z' + {month} * interval '1 month'"),
        );
        admin.batch_execute(&old).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        admin
            .batch_execute("SELECT create_partitions('events')")
            .await
            .unwrap();
    }
    let rounds = reading.await.unwrap();
    assert!(rounds > 5 && month > 5, "{rounds} reads, {month} months");
    wait_until_numbered(&admin, LIMIT).await;
    assert_log_is_complete(&admin).await;
}

#[tokio::test]
async fn readers_are_woken_by_notifications() {
    let service = Service::start_in_process().await;
    let app = &service.server.app;
    let database = open(&service.database.url);
    let _sequencer = start_sequencer(&database);
    let admin = service.database.connect().await;
    let watch = app.log_watch("home").unwrap();
    // Another tenant's events do not end the wait.
    let mut other = watch.subscribe(tenant(1));
    let mut subscription = watch.subscribe(tenant(0));
    let listening = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'perennial feed'";
    wait_until("the listener is connected", LIMIT, async || {
        admin
            .query_one(listening, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            == 1
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    subscription.changed().await;
    let mut waits = Vec::new();
    for _ in 0..10 {
        admin.batch_execute(&insert_events(1, 1)).await.unwrap();
        let started = Instant::now();
        subscription.changed().await;
        waits.push(started.elapsed());
    }
    waits.sort();
    assert!(waits[5] < Duration::from_millis(500), "{waits:?}");
    other.changed().await;
    let started = Instant::now();
    other.changed().await;
    assert!(started.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn metric_shows_for_how_long_events_wait() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let series = r#"perennial_event_log_behind_seconds{cell="home"}"#;
    let admin = connect(&service.database.url).await;
    admin.batch_execute(&insert_events(1, 1)).await.unwrap();
    let behind = async |is_behind: bool| {
        wait_until("the metric follows", LIMIT, async || {
            let seconds = service.server.metric(series).await.unwrap();
            (seconds > 1.0) == is_behind && (is_behind || seconds == 0.0)
        })
        .await;
    };
    behind(true).await;
    let mut worker = Process::spawn(&service.variables, &["work"]);
    behind(false).await;
    assert!(worker.stop().await);
    // Idle, without a sequencer: nothing waits.
    tokio::time::sleep(Duration::from_secs(2)).await;
    behind(false).await;
}
