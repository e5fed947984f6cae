//! `/subscriptions`

mod clock;
mod create;
mod list;
mod races;
mod update;

use serde_json::{Value, json};

use crate::{
    harness::{api::Api, service::Service},
    subscription_plans::minimal,
};

pub const SUBSCRIPTIONS: &str = "/subscriptions";

/// A service with a user, a monthly plan for 19.99, and a server that calls.
pub struct Stage {
    pub service: Service,
    pub caller: Api,
    pub user: String,
    pub plan: String,
}

impl Stage {
    pub async fn start() -> Self {
        Self::with_connections("4").await
    }

    /// With so many connections to the database.
    pub async fn with_connections(count: &str) -> Self {
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_DATABASE_POOL", count.to_owned());
        })
        .await;
        let caller = service.caller(&[]);
        let user = make_user(&caller, "ada@example.com").await;
        let plan = make_plan(&caller, &minimal("pro")).await;
        Self {
            service,
            caller,
            user,
            plan,
        }
    }

    /// The least that a subscription needs, and these fields.
    pub fn fields(&self, further: &Value) -> Value {
        let mut fields = json!({"user_id": self.user, "subscription_plan_id": self.plan});
        for (name, value) in further.as_object().unwrap() {
            fields[name] = value.clone();
        }
        fields
    }

    pub async fn subscribe(&self, further: Value) -> Value {
        let fields = self.fields(&further);
        let answer = self.caller.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(answer.status, 201, "{fields}: {}", answer.text);
        answer.json()
    }

    /// A payment for a subscription, with these fields.
    pub async fn pay(&self, subscription: &Value, further: Value) -> Value {
        let mut fields =
            json!({"subscription_id": subscription["id"], "amount": 19.99, "currency": "USD"});
        for (name, value) in further.as_object().unwrap() {
            fields[name] = value.clone();
        }
        let answer = self
            .caller
            .post("/subscription-payments", &fields.to_string())
            .await;
        assert_eq!(answer.status, 201, "{fields}: {}", answer.text);
        answer.json()
    }

    /// The kinds of what happened to one thing, oldest first.
    pub async fn events(&self, record: &Value) -> Vec<String> {
        let id = record["id"].as_str().unwrap().rsplit('_').next().unwrap();
        let sql = format!("SELECT kind FROM events WHERE subject_id = '{id}' ORDER BY at, id");
        let rows = self
            .service
            .database
            .connect()
            .await
            .query(&sql, &[])
            .await
            .unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

pub async fn make_user(caller: &Api, email: &str) -> String {
    let answer = caller
        .post("/users", &json!({"email": email}).to_string())
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["id"].as_str().unwrap().to_owned()
}

pub async fn make_plan(caller: &Api, fields: &Value) -> String {
    let answer = caller
        .post("/subscription-plans", &fields.to_string())
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Where a record is.
pub fn path_of(record: &Value) -> String {
    let id = record["id"].as_str().unwrap();
    match id.split('_').next().unwrap() {
        "sub" => format!("/subscriptions/{id}"),
        "pay" => format!("/subscription-payments/{id}"),
        other => panic!("{other}"),
    }
}
